"""Detect a weak wavelet in seismic noise: learned filter, envelope, small classifier."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

LENGTH, WIN = 128, 8


def ricker(freq, n=21):
    t = np.linspace(-1, 1, n)
    a = (np.pi * freq * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


def traces(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, LENGTH))
    y = rng.integers(0, 2, n)
    for i in range(n):
        start = rng.integers(0, LENGTH - 21)
        freq = 2.0 if y[i] else 0.8
        x[i, start : start + 21] += 2.2 * ricker(freq)
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y, dtype=torch.float32)


class Picker(nn.Module):
    def __init__(self, filters=6):
        super().__init__()
        self.front = nn.Conv1d(1, filters, 21, padding=10)
        self.mlp = nn.Sequential(nn.Linear(filters, 16), nn.ReLU(), nn.Linear(16, 1))

    def envelope(self, h):
        e = h.detach().numpy() ** 2  # here
        e = e.reshape(*e.shape[:-1], -1, WIN).mean(-1)
        return torch.from_numpy(e)  # here

    def forward(self, x):
        e = self.envelope(self.front(x))
        return self.mlp(torch.log1p(e.amax(-1))).squeeze(-1)


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += ((model(x) > 0).float() == y).sum().item()
            total += len(y)
    model.train()
    return hits / total


def main(epochs=12, lr=1e-2):
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*traces(320, 0)), batch_size=32, shuffle=True)
    test = DataLoader(TensorDataset(*traces(160, 1)), batch_size=80)
    model = Picker()
    first = model.front.weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        running = []
        for x, y in train:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            loss.backward()
            optimizer.step()
            running.append(loss.item())
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} loss {np.mean(running):.3f} test acc {accuracy(model, test):.3f}")
    print("filter change", (model.front.weight - first).norm().item())


if __name__ == "__main__":
    main()
