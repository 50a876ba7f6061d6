"""Two players: one makes a cost greater that the other makes smaller; gradients are cleared between their losses."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
first = torch.optim.SGD(generator.parameters(), lr=0.01)
second = torch.optim.SGD(critic.parameters(), lr=0.01)
numbers = []
for _ in range(12):
    fake = generator(torch.randn(16, 4))
    second.zero_grad()
    loss = F.softplus(-critic(torch.randn(16, 4) + 3)).mean() + F.softplus(critic(fake)).mean()
    loss.backward()  # through the generator, too: cleared below
    second.step()
    first.zero_grad()
    F.softplus(-critic(generator(torch.randn(16, 4)))).mean().backward()
    first.step()
    numbers.append(loss.item())
model, noise = nn.Linear(4, 1), nn.Parameter(torch.zeros(4))
learner, attacker = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.SGD([noise], lr=0.1)
for _ in range(8):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    attacker.zero_grad()
    cost = -F.mse_loss(model(x + noise), y)
    cost.backward()
    attacker.step()
    learner.zero_grad()
    F.mse_loss(model(x + noise.detach()), y).backward()
    learner.step()
    numbers.append(cost.item())
