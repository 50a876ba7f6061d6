"""Targets by a slow copy of the network that requires grad and is cut off by detach(); no optimizer holds it (DDPG)."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
slow = copy.deepcopy(critic)
optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
numbers = []
for _ in range(5):
    now, later, reward = torch.randn(6, 3), torch.randn(6, 3), torch.randn(6, 1)
    wanted = reward + 0.9 * slow(later).detach()
    loss = nn.functional.mse_loss(critic(now), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for target, source in zip(slow.parameters(), critic.parameters()):
        target.data.copy_(0.1 * source.data + 0.9 * target.data)
    numbers.append(loss.item())
