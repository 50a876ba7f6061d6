"""One-step-ahead forecast of an hourly load curve with a GRU."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    window: int = 24
    hidden: int = 24
    batch_size: int = 32
    epochs: int = 8
    lr: float = 1e-2
    seed: int = 11


class Windows(Dataset):
    def __init__(self, series, window):
        self.series = torch.tensor(series, dtype=torch.float32)
        self.window = window

    def __len__(self):
        return len(self.series) - self.window

    def __getitem__(self, i):
        x = self.series[i : i + self.window].unsqueeze(-1)
        y = self.series[i + self.window]
        return x, y


class GRUForecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1]).squeeze(-1)


def make_series(n=400):
    rng = np.random.default_rng(0)
    t = np.arange(n)
    return np.sin(2 * np.pi * t / 24) + 0.3 * np.sin(2 * np.pi * t / 12) + 0.05 * rng.normal(size=n)


def evaluate(model, loader):
    model.eval()
    errors = []
    with torch.no_grad():
        for x, y in loader:
            errors.append((model(x).view(-1) - y).abs())
    return torch.cat(errors).mean().item()


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    series = make_series()
    train = DataLoader(Windows(series[:320], cfg.window), cfg.batch_size, shuffle=True, drop_last=True)
    test = DataLoader(Windows(series[320 - cfg.window :], cfg.window), cfg.batch_size)
    model = GRUForecaster(cfg.hidden)
    loss_fn = nn.MSELoss()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item()
        print(f"epoch {epoch} train {running / len(train):.4f} test MAE {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
