"""Sharpness-aware minimisation: the first gradient of each step is used by hand, and cleared before the second."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 3), torch.randn(16, 1)
numbers = []


def differentiate():
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


for _ in range(6):
    numbers.append(differentiate().item())
    shifts = [0.05 * param.grad.sign() for param in model.parameters()]
    with torch.no_grad():
        for param, shift in zip(model.parameters(), shifts):
            param.add_(shift)
    differentiate()
    with torch.no_grad():
        for param, shift in zip(model.parameters(), shifts):
            param.sub_(shift)
    optimizer.step()
