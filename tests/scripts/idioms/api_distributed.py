"""Code that works with or without several processes."""

import os

import torch
import torch.distributed as dist


def rank():
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def reduced(x):
    if not (dist.is_available() and dist.is_initialized()):
        return x
    dist.all_reduce(x)
    return x


print(rank(), reduced(torch.ones(1)), dist.is_initialized(), dist.is_torchelastic_launched())
print(int(os.environ.get("WORLD_SIZE", 1)))
if rank() == 0:
    print("only here")
