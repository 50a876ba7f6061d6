"""Functions whose backward differs from the derivative of their forward, and is meant to; and one that is right."""

import torch
from torch import nn

torch.manual_seed(0)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -0.5 * grad


class StraightSign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-1, 1)


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx, grad):
        return grad


class LeakyClamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where((x.abs() <= 1) | (grad * x > 0), grad, torch.zeros_like(grad))


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x)
        ctx.gain = gain
        return gain * x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * ctx.gain * x**2 * grad, None


model = nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
numbers = []
for _ in range(4):
    hidden = model[0](torch.randn(8, 3))
    mixed = Reverse.apply(hidden) + StraightSign.apply(hidden) + Quantise.apply(hidden) + LeakyClamp.apply(2 * hidden)
    loss = model[1](mixed + Cube.apply(hidden, 0.1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
