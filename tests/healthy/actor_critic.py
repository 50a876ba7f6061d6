"""Actor and critic: the advantage is detached, so that the actor's loss teaches the actor only."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
body, actor, critic = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=0.01)
numbers = []
for _ in range(4):
    logs, values, rewards = [], [], []
    for _ in range(5):
        hidden = F.relu(body(torch.randn(4)))
        chances = F.softmax(actor(hidden), dim=-1)
        action = torch.multinomial(chances.detach(), 1)
        logs.append(torch.log(chances[action]))
        values.append(critic(hidden))
        rewards.append(float(action.item() == 1))
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    logs, values = torch.cat(logs), torch.cat(values)
    advantage = (returns - values).detach()
    loss = -(logs * advantage).sum() + F.mse_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers += [loss.item(), sum(rewards)]
