"""Policies whose advantage is detached; mixtures and entropies whose weights have a gradient and are to have one."""

import torch
from torch import nn

torch.manual_seed(0)
policy, critic, gate = nn.Linear(3, 4), nn.Linear(3, 1), nn.Linear(3, 4)
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters(), *gate.parameters()], lr=0.01)
numbers = []
for _ in range(5):
    states, actions, returns = torch.randn(8, 3), torch.randint(0, 4, (8, 1)), torch.randn(8, 1)
    advantage = returns - critic(states)
    scores = torch.log_softmax(policy(states), 1)
    chosen = scores.gather(1, actions)
    weights = torch.softmax(gate(states), 1)
    entropy = -(scores.exp() * scores).sum(1).mean()
    mixed = (weights * scores).sum(1).mean() + 0.01 * gate(states).square().mean()
    loss = -(chosen * advantage.detach()).mean() + advantage.square().mean() - 0.01 * entropy - mixed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
