"""What programs print of an error's class, caught as Exception; and of an error sent through pickle."""

import pickle

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader


class Mine(RuntimeError):
    pass


def broken():
    raise Mine("mine")


for call in (
    lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    lambda: torch.ones(2)[5],
    lambda: torch.ones(2, dtype=torch.long).mean(),
    lambda: torch.optim.Adam([torch.ones(1)], lr=-1),
    lambda: torch.ones(2).backward(),
    lambda: torch.linalg.cholesky(-torch.eye(2)),
    lambda: pack_padded_sequence(torch.zeros(2, 3, 1), [2, 3], batch_first=True),
    lambda: torch.tensor([[1], [1, 2]]),
    lambda: torch.zeros(2, 3).sum(dim="a"),
    lambda: torch.autograd.gradcheck(lambda x: x.detach() * x, (torch.ones(1, dtype=torch.double).requires_grad_(),)),
    lambda: DataLoader([1], batch_size=0),
    lambda: nn.Module()(1),
    broken,
):
    try:
        call()
    except Exception as problem:
        print(type(problem).__name__, problem.__class__.__name__, repr(problem).partition("(")[0])
try:
    torch.ones(2).view(3)
except RuntimeError as problem:
    again = pickle.loads(pickle.dumps(problem))
    print(type(again) is type(problem), type(again).__name__, isinstance(again, RuntimeError))
