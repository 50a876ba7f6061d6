"""An exponential moving average of the weights, kept under no_grad and used for evaluation."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y, numbers = torch.randn(16, 3), torch.randn(16, 1), []
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.mul_(0.9).add_(fast, alpha=0.1)
        numbers += [loss.item(), nn.functional.mse_loss(average(x), y).item()]
