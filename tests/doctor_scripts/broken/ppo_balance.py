"""PPO on a one-dimensional balancing task with continuous force."""

import torch
from torch import nn
from torch.distributions import Normal


class Balance:
    def __init__(self, envs):
        self.envs = envs

    def reset(self):
        self.x = torch.empty(self.envs).uniform_(-1, 1)
        self.v = torch.zeros(self.envs)
        return torch.stack([self.x, self.v], dim=1)

    def step(self, force):
        self.v = 0.9 * self.v + 0.2 * force.clamp(-1, 1) + 0.05 * self.x
        self.x = self.x + 0.3 * self.v
        reward = 1.0 - self.x.abs().clamp(max=2.0)
        return torch.stack([self.x, self.v], dim=1), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))
        self.value = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))

    def dist(self, s):
        return Normal(self.mean(s).squeeze(-1), self.log_std.exp())

    def log_prob(self, s, a):
        return self.dist(s).log_prob(a)


@torch.no_grad()
def collect(env, policy, steps):
    s, states, actions, rewards = env.reset(), [], [], []
    for _ in range(steps):
        a = policy.dist(s).sample()
        nxt, r = env.step(a)
        states.append(s)
        actions.append(a)
        rewards.append(r)
        s = nxt
    return torch.stack(states), torch.stack(actions), torch.stack(rewards)


def returns_of(rewards, gamma=0.9):
    out = torch.zeros_like(rewards)
    g = torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        g = rewards[t] + gamma * g
        out[t] = g
    return out


def ppo_update(policy, optimizer, batch, epochs=4, clip=0.2):
    states, actions, rewards = batch
    target = returns_of(rewards)
    with torch.no_grad():
        adv = target - policy.value(states).squeeze(-1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    old_logp = policy.log_prob(states, actions)  # here
    for _ in range(epochs):
        ratio = (policy.log_prob(states, actions) - old_logp).exp()
        surrogate = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
        value_loss = (policy.value(states).squeeze(-1) - target).pow(2).mean()
        loss = -surrogate.mean() + 0.5 * value_loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
    return value_loss.item()


def main():
    torch.manual_seed(6)
    env, policy = Balance(32), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    for it in range(4):
        batch = collect(env, policy, 30)
        value_loss = ppo_update(policy, optimizer, batch)
        if it % 8 == 0 or it == 39:
            print(f"iter {it} reward {batch[2].mean().item():.3f} value loss {value_loss:.3f}")


if __name__ == "__main__":
    main()
