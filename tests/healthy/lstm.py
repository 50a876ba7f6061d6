"""An LSTM predicts the next value of a wave; its state is carried over and cut with detach."""

import torch
from torch import nn

torch.manual_seed(0)
wave = torch.sin(torch.arange(0, 12, 0.1)).reshape(-1, 1, 1)
lstm, head = nn.LSTM(1, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.02)
state, numbers = None, []
for start in range(0, 100, 20):
    seen, wanted = wave[start : start + 19], wave[start + 1 : start + 20]
    out, state = lstm(seen, state)
    loss = ((head(out) - wanted) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = tuple(part.detach() for part in state)
    numbers.append(loss.item())
