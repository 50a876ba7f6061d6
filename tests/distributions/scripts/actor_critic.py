"""Actor and critic walk along a corridor: Categorical actions, returns, advantages."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions.categorical import Categorical

torch.manual_seed(2)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.action, self.value = nn.Linear(5, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, state):
        hidden = torch.relu(self.body(state))
        return Categorical(logits=self.action(hidden)), self.value(hidden).squeeze(-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=0.03)
for episode in range(25):
    place, log_probs, values, rewards = 2, [], [], []
    while 0 < place < 4 and len(rewards) < 30:
        actions, value = policy(F.one_hot(torch.tensor(place), 5).float())
        action = actions.sample()
        log_probs.append(actions.log_prob(action))
        values.append(value)
        place += 2 * action.item() - 1
        rewards.append(1.0 if place == 4 else -0.1)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns, values = torch.tensor(returns), torch.stack(values)
    advantages = returns - values.detach()
    loss = -(torch.stack(log_probs) * advantages).sum() + F.smooth_l1_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 5 == 4:
        print(f"episode {episode + 1}: {len(rewards)} steps, loss {loss.item():.3f}")
print([f"{policy(torch.eye(5)[i])[0].probs[1].item():.3f}" for i in range(1, 4)])
