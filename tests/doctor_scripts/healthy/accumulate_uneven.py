import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(n=150):
    x = torch.randn(n, 8)
    return TensorDataset(x, (x[:, 0] * 2 - x[:, 1]).unsqueeze(1))


def train_epoch(model, loader, optimizer, criterion, accumulate):
    total = 0.0
    seen = 0
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x), y)  # a sum over samples
        loss.backward()
        total += loss.item()
        seen += len(x)
        # the last group of the epoch is smaller
        if i % accumulate == 0 or i == len(loader):
            for p in model.parameters():
                p.grad.div_(seen)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
            optimizer.step()
            optimizer.zero_grad()
            seen = 0
    return total / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(make_data(), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        print(epoch, train_epoch(model, loader, optimizer, nn.MSELoss(reduction="sum"), args.accumulate))


if __name__ == "__main__":
    main()
