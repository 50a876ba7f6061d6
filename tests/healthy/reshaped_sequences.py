"""Views of sequences that keep samples apart: heads split off, dims merged and split, axes swapped before."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.LSTM(4, 8, num_layers=2, bidirectional=True)
first = nn.GRU(4, 8, batch_first=True)
mix = nn.Linear(16, 48)
optimizer = torch.optim.Adam([*layer.parameters(), *first.parameters(), *mix.parameters()], lr=0.01)
numbers = []
for _ in range(3):
    out, (state, _) = layer(torch.randn(5, 4, 4))  # (time, batch, features)
    tokens = out.reshape(5 * 4, 16)
    both = out.view(5, 4, 2, 8).sum(2)
    last = state.view(2, 2, 4, 8)[-1].transpose(0, 1).reshape(4, 16)
    rows = out.transpose(0, 1).reshape(4, -1)
    query, key, value = (one.reshape(5, 8, 8).transpose(0, 1) for one in mix(out).chunk(3, 2))  # (heads, time, 8)
    attended = ((query @ key.transpose(1, 2)).softmax(-1) @ value).transpose(0, 1).reshape(5, 4, 16)
    second, _ = first(torch.randn(4, 7, 4))
    loss = sum(one.square().mean() for one in (tokens, both, last, rows, attended, out[-1], out.mean(0)))
    loss = loss + second[:, -1].square().mean() + second.reshape(4, -1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
