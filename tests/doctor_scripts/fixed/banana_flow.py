"""RealNVP-like flow on a curved two-dimensional density."""

from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.distributions import Normal
from torch.utils.data import DataLoader


@dataclass
class FlowConfig:
    layers: int = 4
    width: int = 32
    epochs: int = 5
    batch: int = 128
    lr: float = 3e-3


class Coupling(nn.Module):
    def __init__(self, width, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def split(self, x):
        a, b = x.chunk(2, dim=1)
        return (b, a) if self.flip else (a, b)

    def join(self, a, b):
        return torch.cat([b, a] if self.flip else [a, b], dim=1)

    def forward(self, x):
        a, b = self.split(x)
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        return self.join(a, b * s.exp() + t), s.squeeze(1)

    def inverse(self, z):
        a, b = self.split(z)
        s, t = self.net(a).chunk(2, dim=1)
        return self.join(a, (b - t) * (-torch.tanh(s)).exp())


class Flow(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(cfg.width, k % 2 == 1) for k in range(cfg.layers))
        self.register_buffer("zero", torch.zeros(2))
        self.register_buffer("one", torch.ones(2))

    @property
    def base(self):
        return Normal(self.zero, self.one)

    def log_prob(self, x):
        logdet = torch.zeros(len(x))
        for step in self.steps:
            x, ld = step(x)
            logdet = logdet + ld
        return self.base.log_prob(x).sum(1) + logdet

    @torch.no_grad()
    def sample(self, n):
        x = self.base.sample((n,))
        for step in reversed(self.steps):
            x = step.inverse(x)
        return x


def banana(n):
    u = torch.randn(n, 2)
    return torch.stack([u[:, 0], 0.5 * u[:, 0] ** 2 + 0.3 * u[:, 1]], dim=1)


def main():
    torch.manual_seed(0)
    cfg = FlowConfig()
    data = banana(1024)
    loader = DataLoader(data, batch_size=cfg.batch, shuffle=True)
    flow = Flow(cfg)
    opt = torch.optim.Adam(flow.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        for x in loader:
            nll = -flow.log_prob(x).mean()
            opt.zero_grad()
            nll.backward()
            opt.step()
        if epoch % 3 == 0:
            print(f"epoch {epoch} nll {nll.item():.3f}")
    s = flow.sample(1000)
    print(
        "data std", [round(v, 2) for v in data.std(0).tolist()], "sample std", [round(v, 2) for v in s.std(0).tolist()]
    )


if __name__ == "__main__":
    main()
