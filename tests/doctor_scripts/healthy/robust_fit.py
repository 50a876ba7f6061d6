"""Adversarial training with PGD inside the loop."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def pgd(model, x, y, eps, steps):
    was_training = model.training
    model.eval()
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)  # leaves parameter grads alone
        delta = (delta.detach() + 0.4 * eps * grad.sign()).clamp(-eps, eps)
    model.train(was_training)
    return (x + delta).detach()


def robust_accuracy(model, loader, eps, steps):
    model.eval()
    clean = robust = n = 0
    for x, y in loader:
        adv = pgd(model, x, y, eps, steps)
        with torch.no_grad():
            clean += (model(x).argmax(1) == y).sum().item()
            robust += (model(adv).argmax(1) == y).sum().item()
        n += len(y)
    return clean / n, robust / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--eps", type=float, default=0.3)
    ap.add_argument("--pgd-steps", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=5)
    args = ap.parse_args()
    torch.manual_seed(0)
    proto = torch.randn(4, 15)
    y = torch.randint(0, 4, (320,))
    x = proto[y] + 0.6 * torch.randn(320, 15)
    train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
    test = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=64)
    model = nn.Sequential(nn.Linear(15, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 4))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in train:
            adv = pgd(model, xb, yb, args.eps, args.pgd_steps)
            opt.zero_grad()
            loss = F.cross_entropy(model(adv), yb)
            loss.backward()
            opt.step()
        clean, robust = robust_accuracy(model, test, args.eps, args.pgd_steps)
        print(f"epoch {epoch} adv loss {loss.item():.3f} clean {clean:.2f} robust {robust:.2f}")


if __name__ == "__main__":
    main()
