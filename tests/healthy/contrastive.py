"""Pairs of a batch against all others, the diagonal masked with -inf."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
things, itself, numbers = torch.randn(6, 5), torch.eye(12).bool(), []
partner = torch.arange(12).roll(6)
for _ in range(5):
    views = torch.cat([things + 0.1 * torch.randn(6, 5), things + 0.1 * torch.randn(6, 5)])
    codes = F.normalize(encoder(views), dim=1)
    scores = (codes @ codes.T / 0.5).masked_fill(itself, float("-inf"))
    loss = F.cross_entropy(scores, partner)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
