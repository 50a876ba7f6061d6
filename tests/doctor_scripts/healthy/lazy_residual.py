"""Deep MLP with zero gates (ReZero), stochastic depth and a custom per-group clip."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Conf:
    depth: int = 12
    dim: int = 24
    drop_path: float = 0.2
    epochs: int = 4
    lr: float = 5e-3


class GatedBlock(nn.Module):
    def __init__(self, dim, drop):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.gate = nn.Parameter(torch.zeros(()))  # starts as the identity; grows in training
        self.drop = drop

    def forward(self, x):
        if self.training and torch.rand(()).item() < self.drop:
            return x  # branch skipped: its weights get no gradient in this step
        return x + self.gate * self.f(x)


class Net(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem = nn.Linear(6, c.dim)
        self.blocks = nn.ModuleList(GatedBlock(c.dim, c.drop_path * i / c.depth) for i in range(c.depth))
        self.head = nn.Linear(c.dim, 1)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        # kept only so that checkpoints of the older version still load
        self.legacy_scale = nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, x):
        if self.training:
            self.seen += len(x)
        h = self.stem(x)
        for b in self.blocks:
            h = b(h)
        return self.head(h).squeeze(-1)


def clip_groups(groups, limits):
    norms = []
    for params, limit in zip(groups, limits):
        with_grad = [p for p in params if p.grad is not None]
        norms.append(nn.utils.clip_grad_norm_(with_grad, limit).item())
    return norms


def main():
    c = Conf()
    torch.manual_seed(0)
    x = torch.randn(320, 6)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    net = Net(c)
    gates = [b.gate for b in net.blocks]
    ids = {id(g) for g in gates}
    rest = [p for p in net.parameters() if p.requires_grad and id(p) not in ids]
    opt = torch.optim.AdamW([{"params": rest}, {"params": gates, "weight_decay": 0.0, "lr": 2 * c.lr}], lr=c.lr)
    for epoch in range(c.epochs):
        net.train()
        total = 0.0
        for xb, yb in loader:
            loss = F.smooth_l1_loss(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            norms = clip_groups([rest, gates], [1.0, 0.5])
            opt.step()
            total += loss.item()
        print(f"{epoch} loss {total / len(loader):.4f} norms {norms[0]:.2f} {norms[1]:.2f} seen {int(net.seen)}")
    net.eval()
    with torch.no_grad():
        print("final", F.smooth_l1_loss(net(x), y).item(), "mean |gate|", torch.stack(gates).abs().mean().item())


if __name__ == "__main__":
    main()
