"""Q-learning with a target network that is copied now and then and runs under no_grad."""

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
target = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
numbers = []
for step in range(8):
    state, after = torch.randn(6, 3), torch.randn(6, 3)
    action, reward = torch.randint(0, 2, (6, 1)), torch.randn(6)
    with torch.no_grad():
        wanted = reward + 0.9 * target(after).max(1).values
    taken = online(state).gather(1, action).squeeze(1)
    loss = nn.functional.smooth_l1_loss(taken, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        with torch.no_grad():
            for old, new in zip(target.parameters(), online.parameters()):
                old.copy_(new)
    numbers.append(loss.item())
