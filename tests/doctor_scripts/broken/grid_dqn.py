import copy
import random
from collections import namedtuple, deque

import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "s a r s2 done")


class ChainEnv:
    n = 7

    def reset(self):
        self.s, self.t = self.n // 2, 0
        return self.s

    def step(self, a):
        self.s += 1 if a == 1 else -1
        self.t += 1
        if self.s == self.n - 1:
            return self.s, 1.0, True
        if self.s == 0:
            return self.s, -0.2, True
        return self.s, 0.0, self.t >= 30


class QNet(nn.Module):
    def __init__(self, n_states, n_actions, hidden=24):
        super().__init__()
        self.n_states = n_states
        self.net = nn.Sequential(nn.Linear(n_states, hidden), nn.ReLU(), nn.Linear(hidden, n_actions))

    def forward(self, s):
        return self.net(F.one_hot(s, self.n_states).float())


class Agent:
    def __init__(self, n_states, n_actions, gamma=0.9, sync_every=50):
        self.online = QNet(n_states, n_actions)
        self.target = self.online  # here
        self.opt = torch.optim.Adam(self.online.parameters(), lr=5e-3)
        self.gamma, self.sync_every = gamma, sync_every
        self.memory = deque(maxlen=1000)
        self.updates = 0

    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return self.online(torch.tensor(s)).argmax().item()

    def learn(self, batch_size=32):
        if len(self.memory) < batch_size:
            return None
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        s, a, s2 = (torch.tensor(v) for v in (batch.s, batch.a, batch.s2))
        r, done = torch.tensor(batch.r), torch.tensor(batch.done, dtype=torch.float32)
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            y = r + self.gamma * (1 - done) * self.target(s2).max(1).values
        loss = F.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            drift = sum((p - q).abs().sum().item() for p, q in zip(self.online.parameters(), self.target.parameters()))
            print(f"sync after {self.updates} updates, drift {drift:.3f}")
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def main(episodes=40):
    random.seed(0)
    torch.manual_seed(0)
    env, agent = ChainEnv(), Agent(ChainEnv.n, 2)
    wins = deque(maxlen=15)
    for ep in range(episodes):
        s, done = env.reset(), False
        while not done:
            a = agent.act(s, eps=max(0.1, 1 - ep / 20))
            s2, r, done = env.step(a)
            agent.memory.append((s, a, r, s2, done))
            agent.learn()
            s = s2
        wins.append(r > 0)
    print("win rate of last episodes", sum(wins) / len(wins))


if __name__ == "__main__":
    main()
