"""Siamese network with contrastive loss on fake face descriptors."""

import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, people=8, shots=4, n=200, seed=0):
        g = torch.Generator().manual_seed(seed)
        base = torch.randn(people, 1, 20, generator=g)
        self.faces = base + 0.4 * torch.randn(people, shots, 20, generator=g)
        rnd = random.Random(seed)
        self.index = []
        for i in range(n):
            p = rnd.randrange(people)
            q = p if i % 2 == 0 else rnd.choice([k for k in range(people) if k != p])
            self.index.append((p, rnd.randrange(shots), q, rnd.randrange(shots)))

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        p, a, q, b = self.index[i]
        return self.faces[p, a], self.faces[q, b], float(p == q)


class Embedder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        return self.net(x)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, za, zb, same):
        dist = torch.sqrt((za - zb).pow(2).sum(dim=1) + 1e-8)
        pull = same * dist.pow(2)
        push = (1 - same) * torch.clamp(self.margin - dist, min=0).pow(2)
        return (pull + push).mean()


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pairs(), batch_size=20, shuffle=True)
    net, criterion = Embedder(), ContrastiveLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(6):
        total = 0.0
        for a, b, same in loader:
            same = same.float()
            loss = criterion(net(a), net(b), same)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    with torch.no_grad():
        print("embedding norm", net(loader.dataset.faces[:, 0]).norm(dim=1).mean().item())


if __name__ == "__main__":
    main()
