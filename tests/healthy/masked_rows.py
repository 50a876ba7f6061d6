"""Attention whose rows may be masked altogether: the NaN of such a row is replaced at once, under no_grad."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x, hidden, numbers = torch.randn(3, 4), torch.tensor([[True] * 3, [False] * 3, [False, True, False]]), []
for _ in range(5):
    scores = layer(x) @ x.T
    with torch.no_grad():
        shown = torch.nan_to_num(torch.softmax(scores.masked_fill(hidden, float("-inf")), 1))
    safe = scores.masked_fill(hidden, -1e9)
    loss = (torch.softmax(safe, 1) @ x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers += [loss.item(), shown.sum().item()]
