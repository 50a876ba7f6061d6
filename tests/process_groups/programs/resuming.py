"""Trains with a checkpoint after each step, goes on from the last one, and is killed once if told where."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

folder, kill_at = Path(sys.argv[1]), int(sys.argv[2])
file = folder / "checkpoint.pt"
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(32, 5, generator=torch.Generator().manual_seed(1)), torch.arange(32.0)[:, None])
sampler = DistributedSampler(data, seed=2)
loader = DataLoader(data, batch_size=4, sampler=sampler, generator=torch.Generator())  # draws of its own
done = 0
if file.exists():
    saved = torch.load(file, weights_only=False)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["random"][rank])
    done = saved["steps"]
for epoch in range(4):
    sampler.set_epoch(epoch)
    for place, (inputs, targets) in enumerate(loader):
        step = epoch * len(loader) + place
        if step < done:
            continue
        optimizer.zero_grad()
        ((model(inputs) - targets) ** 2).mean().backward()
        if step == kill_at and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        random = [None] * world
        dist.all_gather_object(random, torch.get_rng_state())
        if rank == 0:
            facts = {"steps": step + 1, "random": random}
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), **facts}, folder / "new.pt")
            os.replace(folder / "new.pt", file)
weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
(folder / f"weights.{rank}").write_bytes(weights.numpy().tobytes())
dist.destroy_process_group()
