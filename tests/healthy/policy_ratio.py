"""A policy improved several times against its own answers from before, which were taken under no_grad (PPO)."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
numbers = []
for _ in range(3):
    seen, actions, gain = torch.randn(10, 3), torch.randint(0, 2, (10, 1)), torch.randn(10)
    with torch.no_grad():
        before = torch.log_softmax(policy(seen), 1).gather(1, actions).squeeze(1)
    for _ in range(3):
        now = torch.log_softmax(policy(seen), 1).gather(1, actions).squeeze(1)
        ratio = (now - before).exp()
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
