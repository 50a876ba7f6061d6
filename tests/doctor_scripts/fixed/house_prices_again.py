import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_table(n=500):
    rooms = np.random.randint(1, 7, n)
    area = rooms * 18 + np.random.normal(0, 8, n)
    age = np.random.uniform(0, 80, n)
    price = 1.5 * area - 0.8 * age + 12 * rooms + np.random.normal(0, 5, n)
    feats = np.stack([rooms, area, age], 1).astype("float32")
    feats = (feats - feats.mean(0)) / feats.std(0)
    price = ((price - price.mean()) / price.std()).astype("float32")
    return torch.from_numpy(feats), torch.from_numpy(price)[:, None]


def build_model(width):
    return nn.Sequential(
        nn.Linear(3, width),
        nn.LayerNorm(width),
        nn.GELU(),
        nn.Dropout(0.1),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, 1),
    )


def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def evaluate(model, loader, loss_fn):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
    return total / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description="house price regression")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    seed_everything(123)
    x, y = load_table()
    train_loader = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=100)
    model = build_model(args.width)
    loss_fn = nn.HuberLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    best = float("inf")
    for epoch in range(args.epochs):
        train_loss = train_epoch(model, train_loader, loss_fn, optimizer)
        val_loss = evaluate(model, val_loader, loss_fn)
        best = min(best, val_loss)
        print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} best {best:.4f}")


if __name__ == "__main__":
    main()
