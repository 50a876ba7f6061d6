"""Small soft actor-critic: reparametrised actions, twin critics, target nets, learned temperature."""

import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, o))


class Descent:
    """Bring height and speed to zero with bounded thrust."""

    def reset(self):
        self.h, self.v, self.t = random.uniform(0.5, 1.5), 0.0, 0
        return torch.tensor([self.h, self.v])

    def step(self, u):
        self.v += 0.3 * u
        self.h += 0.3 * self.v
        self.t += 1
        cost = self.h**2 + 0.1 * self.v**2
        return torch.tensor([self.h, self.v]), -min(cost, 4.0), self.t >= 12


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(2, 2)

    def forward(self, s):
        mu, log_std = self.net(s).chunk(2, -1)
        dist = Normal(mu, log_std.clamp(-4, 1).exp())
        raw = dist.rsample()
        a = torch.tanh(raw)
        logp = dist.log_prob(raw) - 2 * (0.6931 - raw - F.softplus(-2 * raw))
        return a, logp.sum(-1, keepdim=True)


class SAC:
    def __init__(self, gamma=0.9, tau=0.05):
        self.actor = Actor()
        self.q = nn.ModuleList([mlp(3, 1), mlp(3, 1)])
        self.q_target = copy.deepcopy(self.q).requires_grad_(False)
        self.log_alpha = torch.tensor(-2.0, requires_grad=True)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.opt_q = torch.optim.Adam(self.q.parameters(), lr=5e-3)
        self.opt_t = torch.optim.Adam([self.log_alpha], lr=3e-3)
        self.gamma, self.tau = gamma, tau
        self.memory = deque(maxlen=3000)

    def learn(self, n=64):
        s, a, r, s2 = (torch.stack(v) for v in zip(*random.sample(self.memory, n)))
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            a2, logp2 = self.actor(s2)
            q2 = torch.min(*[q(torch.cat([s2, a2], 1)) for q in self.q_target])
            y = r + self.gamma * (q2 - alpha * logp2)
        q_loss = sum(F.mse_loss(q(torch.cat([s, a], 1)), y) for q in self.q)
        self.opt_q.zero_grad()
        q_loss.backward()
        self.opt_q.step()

        # gradients that reach the critics here are cleared before their next step
        pi, logp = self.actor(s)
        q_pi = torch.min(*[q(torch.cat([s, pi], 1)) for q in self.q])
        a_loss = (alpha * logp - q_pi).mean()
        self.opt_a.zero_grad()
        a_loss.backward()
        self.opt_a.step()

        t_loss = -(self.log_alpha * (logp.detach() - 1.0)).mean()
        self.opt_t.zero_grad()
        t_loss.backward()
        self.opt_t.step()
        with torch.no_grad():
            for tp, p in zip(self.q_target.parameters(), self.q.parameters()):
                tp.lerp_(p, self.tau)


def main():
    random.seed(0)
    torch.manual_seed(0)
    env, agent = Descent(), SAC()
    rets = []
    for ep in range(12):
        s, done, total = env.reset(), False, 0.0
        while not done:
            with torch.no_grad():
                a, _ = agent.actor(s)
            s2, r, done = env.step(a.item())
            agent.memory.append((s, a, torch.tensor([r]), s2))
            s, total = s2, total + r
            if len(agent.memory) >= 64:
                agent.learn()
        rets.append(total)
        if ep % 10 == 9:
            print(
                "episode",
                ep + 1,
                "return",
                round(sum(rets[-10:]) / 10, 3),
                "alpha",
                round(agent.log_alpha.exp().item(), 3),
            )


if __name__ == "__main__":
    main()
