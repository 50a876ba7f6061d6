import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(i, o, out=None):
    layers = [nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, o)]
    if out is not None:
        layers.append(out)
    return nn.Sequential(*layers)


class Reach:
    """Move a point to a goal on a line with bounded velocity."""

    def reset(self):
        self.x, self.goal, self.t = random.uniform(-1, 1), random.uniform(-1, 1), 0
        return torch.tensor([self.x, self.goal])

    def step(self, u):
        self.x = max(-1.5, min(1.5, self.x + 0.3 * u))
        self.t += 1
        return torch.tensor([self.x, self.goal]), -abs(self.x - self.goal), self.t >= 12


@torch.no_grad()
def soft_update(target, source, tau):
    for tp, p in zip(target.parameters(), source.parameters()):
        tp.mul_(1 - tau).add_(p, alpha=tau)


class DDPG:
    def __init__(self, gamma=0.9, tau=0.02, lr=3e-3):
        self.actor, self.critic = mlp(2, 1, nn.Tanh()), mlp(3, 1)
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.a_opt = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=lr)
        self.gamma, self.tau = gamma, tau
        self.buffer = deque(maxlen=2000)

    def act(self, s, noise):
        with torch.no_grad():
            return float(self.actor(s).item() + noise * random.gauss(0, 1))

    def learn(self, n=32):
        s, a, r, s2 = zip(*random.sample(self.buffer, n))
        s, s2 = torch.stack(s), torch.stack(s2)
        a, r = torch.tensor(a).view(-1, 1), torch.tensor(r).view(-1, 1)
        with torch.no_grad():
            y = r + self.gamma * self.critic_t(torch.cat([s2, self.actor_t(s2)], 1))
        c_loss = F.mse_loss(self.critic(torch.cat([s, a], 1)), y)
        self.c_opt.zero_grad()
        c_loss.backward()
        self.c_opt.step()

        a_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
        self.a_opt.zero_grad()
        a_loss.backward()
        self.a_opt.step()
        soft_update(self.actor_t, self.actor, self.tau)
        soft_update(self.critic_t, self.critic, self.tau)


def main():
    random.seed(0)
    torch.manual_seed(0)
    env, agent = Reach(), DDPG()
    returns = []
    for ep in range(15):
        s, done, total = env.reset(), False, 0.0
        while not done:
            a = max(-1.0, min(1.0, agent.act(s, noise=0.3)))
            s2, r, done = env.step(a)
            agent.buffer.append((s, a, r, s2))
            s, total = s2, total + r
            if len(agent.buffer) > 64:
                agent.learn()
        returns.append(total)
        if ep % 15 == 14:
            print("episode", ep + 1, "return", round(sum(returns[-15:]) / 15, 3))


if __name__ == "__main__":
    main()
