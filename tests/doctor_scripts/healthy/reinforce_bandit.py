import torch
import torch.nn as nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, n_contexts=4, n_arms=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_contexts, 24), nn.Tanh())
        self.logits = nn.Linear(24, n_arms)
        self.value = nn.Linear(24, 1)

    def forward(self, context):
        h = self.body(context)
        return Categorical(logits=self.logits(h)), self.value(h).squeeze(-1)


def play(policy, horizon=8):
    log_probs, values, entropies, rewards = [], [], [], []
    for _ in range(horizon):
        context = torch.randint(0, 4, ()).item()
        dist, value = policy(torch.eye(4)[context])
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(1.0 if action.item() == context % 3 else 0.0)
    return torch.stack(log_probs), torch.stack(values), torch.stack(entropies), rewards


def discounted(rewards, gamma=0.9):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out[::-1])


def main():
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    average = 0.0
    for episode in range(40):
        log_probs, values, entropies, rewards = play(policy)
        returns = discounted(rewards)
        advantage = (returns - values).detach()
        loss = -(log_probs * advantage).mean() + 0.5 * (returns - values).pow(2).mean() - 0.01 * entropies.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = 0.9 * average + 0.1 * sum(rewards)
    print("reward", average)


if __name__ == "__main__":
    main()
