import random
from collections import deque

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """Walk right to reach the goal; reward -0.1 per step, +1 at the end."""

    def __init__(self, length=6, limit=20):
        self.length, self.limit = length, limit

    def reset(self):
        self.pos, self.t = 0, 0
        return self._obs()

    def _obs(self):
        v = torch.zeros(self.length)
        v[self.pos] = 1.0
        return v

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        self.t += 1
        done = self.pos == self.length - 1 or self.t >= self.limit
        reward = 1.0 if self.pos == self.length - 1 else -0.1
        return self._obs(), reward, done


class Policy(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh(), nn.Linear(32, n_act))

    def forward(self, obs):
        return Categorical(logits=self.net(obs))


class Reinforce:
    def __init__(self, policy, gamma=0.95, lr=1e-2):
        self.policy, self.gamma = policy, gamma
        self.opt = torch.optim.Adam(policy.parameters(), lr=lr)

    def play(self, env):
        obs, done = env.reset(), False
        log_probs, rewards = [], []
        while not done:
            dist = self.policy(obs)
            action = dist.sample()
            log_probs.append(dist.log_prob(action).item())  # here
            obs, r, done = env.step(action.item())
            rewards.append(r)
        return log_probs, rewards

    def returns(self, rewards):
        out, acc = [], 0.0
        for r in reversed(rewards):
            acc = r + self.gamma * acc
            out.insert(0, acc)
        return out

    def update(self, log_probs, rewards, baseline):
        loss = 0.0
        for lp, ret in zip(log_probs, self.returns(rewards)):
            loss = loss - lp * (ret - baseline)
        self.opt.zero_grad()
        loss.backward()  # here
        self.opt.step()


def main():
    random.seed(0)
    torch.manual_seed(0)
    env = Corridor()
    agent = Reinforce(Policy(6, 2))
    history = deque(maxlen=20)
    for episode in range(60):
        log_probs, rewards = agent.play(env)
        baseline = sum(history) / len(history) if history else 0.0
        agent.update(log_probs, rewards, baseline)
        history.append(sum(rewards))
        if episode % 40 == 39:
            print("episode", episode + 1, "mean return", round(sum(history) / len(history), 3))


if __name__ == "__main__":
    main()
