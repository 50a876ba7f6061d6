"""Writes where a process finds itself, and the sum over all ranks; by any launcher, or spawned with a place to meet."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

NAMES = """
RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE
TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS OMP_NUM_THREADS
"""


def work(rank, world, folder, method):
    """Join the group and write what is found; outside of torchrun join it twice."""
    for _ in range(1 if dist.is_torchelastic_launched() else 2):
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
        total = torch.tensor([2.0 ** dist.get_rank()])
        dist.all_reduce(total)
        rank, world = dist.get_rank(), dist.get_world_size()
        dist.destroy_process_group()
    found = {name: os.environ.get(name) for name in NAMES.split()} | {"total": total.item()}
    (Path(folder) / f"{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        mp.spawn(work, args=(2, sys.argv[1], sys.argv[2]), nprocs=2)
    else:
        work(-1, -1, sys.argv[1], "env://")
