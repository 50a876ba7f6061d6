"""An actor-critic, and REINFORCE, on a walk along a line: returns discounted backwards, log-probabilities saved."""

from collections import namedtuple

import torch
from torch import nn, optim
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(543)
torch.set_default_dtype(torch.float64)
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.action_head, self.value_head = nn.Linear(2, 16), nn.Linear(16, 2), nn.Linear(16, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)


def finish_episode():
    total, policy_losses, value_losses, returns = 0, [], [], []
    for reward in model.rewards[::-1]:
        total = reward + 0.9 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    for (log_prob, value), target in zip(model.saved_actions, returns):
        policy_losses.append(-log_prob * (target - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([target])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


for episode in range(5):
    place = 0.0
    for step in range(10):
        probs, value = model(torch.tensor([place, step / 10]))
        chosen = Categorical(probs)
        action = chosen.sample()
        model.saved_actions.append(SavedAction(chosen.log_prob(action), value))
        place += 1.0 if action.item() else -1.0
        model.rewards.append(-abs(place - 3.0))
    print(f"episode {episode}: place {place:.0f} loss {finish_episode():.3f}")
