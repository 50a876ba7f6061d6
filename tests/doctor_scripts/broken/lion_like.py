"""A sign-momentum optimizer, tried on a small digit-like problem."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class SignMomentum(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        if lr <= 0:
            raise ValueError(f"bad lr {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, wd = group["lr"], group["weight_decay"]
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["avg"] = torch.zeros_like(p)
                avg = state["avg"]
                update = (b1 * avg + (1 - b1) * p.grad).sign()
                if wd:
                    update = update + wd * p
                avg.lerp_(p.grad, 1 - b2)
                p = p - lr * update  # here
        return loss


def digits(n=240):
    g = torch.Generator().manual_seed(4)
    proto = (torch.rand(6, 25, generator=g) > 0.5).float()
    y = torch.randint(0, 6, (n,), generator=g)
    return (proto[y] + 0.4 * torch.randn(n, 25, generator=g)), y


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*digits()), batch_size=24, shuffle=True)
    model = nn.Sequential(nn.Linear(25, 32), nn.ReLU(), nn.Linear(32, 6))
    optimizer = SignMomentum(model.parameters(), lr=2e-3, weight_decay=0.01)
    train(model, loader, optimizer, 8)


if __name__ == "__main__":
    main()
