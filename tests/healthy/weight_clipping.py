"""A critic whose weights are clipped through .data after each step, when no graph needs them any more (WGAN)."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
numbers = []
for _ in range(5):
    optimizer.zero_grad()
    loss = critic(torch.randn(6, 2)).mean() - critic(torch.randn(6, 2) + 1).mean()
    loss.backward()
    optimizer.step()
    for parameter in critic.parameters():
        parameter.data.clamp_(-0.1, 0.1)
    numbers.append(loss.item())
