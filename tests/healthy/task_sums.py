"""Losses of several tasks summed by `loss += ...` within a step, and numbers summed over steps."""

import torch
from torch import nn

torch.manual_seed(0)
body, heads = nn.Linear(3, 6), nn.ModuleList([nn.Linear(6, 1) for _ in range(4)])
optimizer = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.05)
x, numbers, total = torch.randn(8, 3), [], 0.0
for _ in range(5):
    hidden = torch.tanh(body(x))
    loss = 0
    for number, head in enumerate(heads):
        loss += (head(hidden) - number).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    numbers.append(total)
