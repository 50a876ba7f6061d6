"""A user's own Function: rounding whose gradient passes straight through, beside one that keeps what it needs."""

import torch
from torch import nn


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


torch.manual_seed(0)
layer = nn.Linear(3, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
x, numbers = torch.randn(8, 3), []
for _ in range(5):
    codes = Round.apply(layer(x) * 4) / 4
    loss = (Cube.apply(codes) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
