"""A new head first under a backbone that runs without gradients, then all of it with smaller steps below."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
head = nn.Linear(8, 1)
x, y, numbers = torch.randn(10, 3), torch.randn(10, 1), []
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(4):
    with torch.no_grad():
        features = backbone(x)
    loss = nn.functional.mse_loss(head(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
groups = [{"params": backbone.parameters(), "lr": 0.01}, {"params": head.parameters(), "weight_decay": 0.01}]
optimizer = torch.optim.AdamW(groups, lr=0.05, weight_decay=0.0)
for _ in range(4):
    loss = nn.functional.mse_loss(head(backbone(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
