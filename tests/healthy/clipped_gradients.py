"""Gradients clipped by norm, the norm logged."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y, numbers = torch.randn(20, 5) * 10, torch.randn(20, 1) * 10, []
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    numbers += [loss.item(), norm.item()]
