"""A layer whose weight is computed anew from its length and direction at each call (a parametrisation)."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(0)
model = nn.Sequential(weight_norm(nn.Linear(4, 6)), nn.LeakyReLU(), weight_norm(nn.Linear(6, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y, numbers = torch.randn(9, 4), torch.randn(9, 1), []
for _ in range(4):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
