"""Full backward hooks on modules that return dicts, named tuples, lists, or take keyword arguments."""

import warnings
from typing import NamedTuple

import torch
from said import error
from torch import nn

warnings.simplefilter("ignore")


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x, y):
        out = x * 2, y * 3
        return {"tuple": out, "named": Pair(*out), "list": list(out), "dict": {"a": out[0], "b": out[1]}}[self.kind]


for kind in ("tuple", "named", "list", "dict"):
    net = Net(kind)
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((len(gi), type(go).__name__, len(go))))
    net.register_full_backward_pre_hook(lambda m, go: seen.append(("pre", len(go))))
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    try:
        out = net(x, y)
        print(kind, type(out).__name__)
        parts = list(out.values()) if isinstance(out, dict) else list(out)
        sum(part.sum() for part in parts).backward()
        print(x.grad.tolist(), y.grad.tolist(), seen)
    except Exception as problem:
        print(error(problem))
