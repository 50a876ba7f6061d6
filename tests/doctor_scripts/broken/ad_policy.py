"""PPO with a clipped objective on a contextual bandit (which ad for which user)."""

from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class PPOConfig:
    iterations: int = 4
    batch: int = 128
    epochs: int = 4
    minibatch: int = 32
    clip: float = 0.2
    lr: float = 5e-3
    seed: int = 0


class AdWorld:
    def __init__(self, n_features=5, n_ads=4):
        g = torch.Generator().manual_seed(11)
        self.w = torch.randn(n_features, n_ads, generator=g)

    def users(self, n):
        return torch.randn(n, self.w.size(0))

    def reward(self, users, ads):
        score = (users @ self.w).gather(1, ads[:, None]).squeeze(1)
        return torch.sigmoid(score) + 0.05 * torch.randn(len(ads))


class Policy(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 32), nn.Tanh(), nn.Linear(32, n_out))

    def forward(self, s):
        return Categorical(logits=self.net(s))


class PPO:
    def __init__(self, policy, cfg):
        self.policy, self.cfg = policy, cfg
        self.opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)

    def collect(self, world):
        s = world.users(self.cfg.batch)
        with torch.no_grad():
            a = self.policy(s).sample()
        return s, a, world.reward(s, a)

    def update(self, s, a, r):
        adv = (r - r.mean()) / (r.std() + 1e-8)
        for _ in range(self.cfg.epochs):
            for idx in torch.randperm(len(s)).split(self.cfg.minibatch):
                logp = self.policy(s[idx]).log_prob(a[idx])
                old_logp = self.policy(s[idx]).log_prob(a[idx])  # here
                ratio = (logp - old_logp).exp()  # here
                clipped = ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip)
                loss = -torch.min(ratio * adv[idx], clipped * adv[idx]).mean()
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                self.opt.step()
        return loss.item()


def main():
    cfg = PPOConfig()
    torch.manual_seed(cfg.seed)
    world = AdWorld()
    agent = PPO(Policy(5, 4), cfg)
    for it in range(cfg.iterations):
        s, a, r = agent.collect(world)
        loss = agent.update(s, a, r)
        if it % 6 == 0:
            print(f"iter {it:2d} mean reward {r.mean().item():.3f} surrogate {loss:+.4f}")


if __name__ == "__main__":
    main()
