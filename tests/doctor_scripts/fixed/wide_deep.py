"""Wide & deep click model trained with an effective batch of 4 micro-batches."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class WideDeep(nn.Module):
    def __init__(self, cards, dense, dim=6):
        super().__init__()
        self.wide = nn.ModuleList(nn.Embedding(c, 1) for c in cards)
        self.emb = nn.ModuleList(nn.Embedding(c, dim) for c in cards)
        self.deep = nn.Sequential(nn.Linear(dim * len(cards) + dense, 32), nn.ReLU(), nn.Linear(32, 1))
        for w in self.wide:
            nn.init.zeros_(w.weight)

    def forward(self, cat, num):
        wide = sum(w(cat[:, i]) for i, w in enumerate(self.wide))
        deep = torch.cat([e(cat[:, i]) for i, e in enumerate(self.emb)] + [num], dim=1)
        return (wide + self.deep(deep)).squeeze(1)


def clicks(n, cards, dense, seed=0):
    g = torch.Generator().manual_seed(seed)
    cat = torch.stack([torch.randint(0, c, (n,), generator=g) for c in cards], 1)
    num = torch.randn(n, dense, generator=g)
    bias = [torch.randn(c, generator=g) for c in cards]
    score = sum(b[cat[:, i]] for i, b in enumerate(bias)) + num[:, 0] * num[:, 1]
    return cat, num, (score > 0).float()


def train_epoch(model, loader, optimizer, accum):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (cat, num, y) in enumerate(loader):
        loss = F.binary_cross_entropy_with_logits(model(cat, num), y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item() * accum
    return total / len(loader)


@torch.no_grad()
def evaluate(model, cat, num, y):
    model.eval()
    return ((model(cat, num) > 0).float() == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=0.3)
    args = ap.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    cards = [8, 12, 5]
    cat, num, y = clicks(800, cards, 3)
    train = DataLoader(TensorDataset(cat[:640], num[:640], y[:640]), batch_size=16, shuffle=True)
    model = WideDeep(cards, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        loss = train_epoch(model, train, optimizer, args.accum)
        acc = evaluate(model, cat[640:], num[640:], y[640:])
        print(f"epoch {epoch} loss {loss:.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
