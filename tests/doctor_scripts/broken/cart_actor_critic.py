"""Actor-critic with a shared trunk on a one-dimensional balancing toy."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Balance:
    """Keep |x| < 1 for 25 steps with pushes left or right."""

    def reset(self):
        self.x, self.v, self.t = random.uniform(-0.2, 0.2), 0.0, 0
        return [self.x, self.v]

    def step(self, a):
        self.v += 0.12 * (1 if a else -1) + 0.15 * self.x
        self.x += 0.3 * self.v
        self.t += 1
        fell = abs(self.x) > 1
        return [self.x, self.v], 0.0 if fell else 1.0, fell or self.t >= 25


class ActorCritic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.pi = nn.Linear(width, 2)
        self.v = nn.Linear(width, 1)

    def forward(self, s):
        h = self.trunk(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def rollout(env, net, gamma=0.9):
    states, actions, rewards = [], [], []
    s, done = env.reset(), False
    while not done:
        with torch.no_grad():
            dist, _ = net(torch.tensor(s))
        a = dist.sample().item()
        states.append(s)
        actions.append(a)
        s, r, done = env.step(a)
        rewards.append(r)
    rets, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        rets.append(acc)
    return torch.tensor(states), torch.tensor(actions), torch.tensor(rets[::-1]), len(rewards)


def update(net, actor_opt, critic_opt, states, actions, rets):
    dist, value = net(states)
    adv = (rets - value).detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    critic_loss = 0.1 * F.mse_loss(value, rets)
    actor_loss = -(dist.log_prob(actions) * adv).mean() - 0.01 * dist.entropy().mean()
    critic_opt.zero_grad()
    critic_loss.backward(retain_graph=True)
    critic_opt.step()  # here
    actor_opt.zero_grad()
    actor_loss.backward()  # here
    actor_opt.step()
    return actor_loss.item(), critic_loss.item()


def main(episodes=40):
    random.seed(1)
    torch.manual_seed(1)
    env, net = Balance(), ActorCritic()
    actor_opt = torch.optim.Adam(net.pi.parameters(), lr=1e-2)
    critic_opt = torch.optim.Adam([*net.trunk.parameters(), *net.v.parameters()], lr=5e-3)
    lengths = []
    for ep in range(episodes):
        states, actions, rets, n = rollout(env, net)
        losses = update(net, actor_opt, critic_opt, states, actions, rets)
        lengths.append(n)
        if ep % 30 == 29:
            print(f"episode {ep + 1} length {sum(lengths[-30:]) / 30:.1f} losses {losses[0]:.3f} {losses[1]:.3f}")


if __name__ == "__main__":
    main()
