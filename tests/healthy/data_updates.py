"""The way of old code: updates, an average and cleared gradients, all through .data."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
average = copy.deepcopy(model)
x, y, numbers = torch.randn(12, 3), torch.randn(12, 1), []
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    for parameter, slow in zip(model.parameters(), average.parameters()):
        parameter.data -= 0.1 * parameter.grad.data
        parameter.grad.data.zero_()
        slow.data.mul_(0.9).add_(parameter.data, alpha=0.1)
    numbers.append(loss.item())
