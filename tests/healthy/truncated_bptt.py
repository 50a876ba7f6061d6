"""A recurrent cell through time, cut every four steps with detach."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(2, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.05)
series = torch.randn(16, 3, 2)
hidden, numbers = torch.zeros(3, 4), []
for start in range(0, 16, 4):
    hidden, loss = hidden.detach(), 0
    for t in range(start, start + 4):
        hidden = cell(series[t], hidden)
        loss = loss + (head(hidden) - series[t, :, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
