"""Simulate a large batch: gradients of several micro-batches are summed before a step."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_data(n=400):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 12, generator=g)
    w = torch.randn(12, 3, generator=g)
    return x, (x @ w).argmax(1)


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, x):
        return self.net(x)


def train_epoch(model, loader, optimizer, scheduler, accum):
    model.train()
    optimizer.zero_grad()
    n_batches = len(loader)
    seen = 0.0
    for i, (x, y) in enumerate(loader):
        # the last group may be shorter than the others
        group_start = (i // accum) * accum
        group = min(accum, n_batches - group_start)
        loss = F.cross_entropy(model(x), y) / group
        loss.backward()
        seen += loss.item() * group
        if (i + 1) % accum == 0 or i + 1 == n_batches:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    return seen / n_batches


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=10)
    args = ap.parse_args()

    torch.manual_seed(0)
    x, y = get_data()
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    val_x, val_y = x[:100], y[:100]
    model = MLP(32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    steps = args.epochs * -(-len(loader) // args.accum)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=steps)
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, optimizer, scheduler, args.accum)
        model.eval()
        with torch.no_grad():
            acc = (model(val_x).argmax(1) == val_y).float().mean().item()
        print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
