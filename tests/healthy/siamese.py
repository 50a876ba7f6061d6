"""Two views of one thing through one encoder, the gradient of one side stopped (SimSiam)."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
predictor = nn.Linear(4, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1)
things, numbers = torch.randn(10, 6), []
for _ in range(5):
    first, second = encoder(things + 0.1 * torch.randn(10, 6)), encoder(things + 0.1 * torch.randn(10, 6))
    loss = -F.cosine_similarity(predictor(first), second.detach()).mean() / 2
    loss = loss - F.cosine_similarity(predictor(second), first.detach()).mean() / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
