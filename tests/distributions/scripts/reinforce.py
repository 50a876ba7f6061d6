"""REINFORCE on a bandit of three arms: the gradient goes through log_prob, not through the samples."""

import torch
from torch.distributions import Categorical, Normal

torch.manual_seed(1)
pays = torch.tensor([0.1, 0.5, 1.0])
logits = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([logits], lr=0.3)
baseline = 0.0
for episode in range(60):
    policy = Categorical(logits=logits)
    arms = policy.sample((16,))
    rewards = Normal(pays[arms], 0.1).sample()
    loss = -(policy.log_prob(arms) * (rewards - baseline)).mean() - 0.01 * policy.entropy()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * rewards.mean().item()
    if episode % 20 == 19:
        print(episode + 1, [f"{share:.4f}" for share in policy.probs.tolist()], f"{policy.perplexity().item():.4f}")
print(policy, policy.mode.item(), arms.tolist())
