import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class FlowerDataset(Dataset):
    """Four measurements per flower, the species in the last column."""

    def __init__(self, n=90, seed=0):
        g = torch.Generator().manual_seed(seed)
        species = torch.randint(0, 3, (n,), generator=g)
        centers = torch.tensor([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
        measurements = centers[species] + 0.3 * torch.randn(n, 4, generator=g)
        self.table = torch.cat([measurements, species.float().unsqueeze(1)], dim=1)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, idx):
        row = self.table[idx]
        return row[:4], row[4:].long()  # here


def build_model(hidden):
    return nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 3))


def train(args):
    torch.manual_seed(args.seed)
    loader = DataLoader(FlowerDataset(seed=args.seed), batch_size=args.batch_size, shuffle=True)
    model = build_model(args.hidden)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        correct, seen, total_loss = 0, 0, 0.0
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = criterion(logits, y)  # here
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(x)
            correct += (logits.argmax(dim=1) == y).sum().item()
            seen += len(x)
        print(f"[{epoch}] loss={total_loss / seen:.3f} acc={correct / seen:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())
