"""Trains until something goes wrong on rank 1: `failing.py HOW FOLDER`."""

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

how, folder = sys.argv[1], Path(sys.argv[2])
dist.init_process_group("gloo", timeout=timedelta(seconds={"late": 10, "never": 2}.get(how, 60)))
rank = dist.get_rank()
helper = os.fork()  # as workers of a DataLoader: it must not outlive its rank
if not helper:
    time.sleep(600)
    os._exit(0)
(folder / f"{rank}.pids").write_text(f"{os.getpid()} {helper}")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
for step in range(1000 if how != "well" else 5):
    model(torch.ones(3, 4)).sum().backward()
    if rank == 1 and step == 3:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raises":
            raise ValueError("a mistake of the script")
        if how == "leaves":
            os.kill(helper, signal.SIGKILL)
            sys.exit(0)
        if how == "late":
            time.sleep(600)
        if how == "other size":
            dist.all_reduce(torch.ones(7))
    if how == "waits":
        (folder / f"{rank}.steps").write_text(str(step))
        time.sleep(0.05)
dist.destroy_process_group()
os.kill(helper, signal.SIGKILL)
