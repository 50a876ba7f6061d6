"""`torch.compile` and the switches around it."""

import torch
from torch import nn


@torch.compile
def doubled(x):
    return x * 2


@torch.compiler.disable
def plain(x):
    return x


print(torch.compiler.is_compiling(), plain(3))
model = torch.compile(nn.Linear(2, 2), disable=True)
print(model(torch.zeros(1, 2)).shape, isinstance(model, nn.Module))
torch.compiler.reset()
print(torch._dynamo.is_compiling() if hasattr(torch, "_dynamo") else False)


@torch.no_grad()
@torch.compiler.disable(recursive=False)
def other(x):
    return x + 1


print(other(torch.ones(1)))
