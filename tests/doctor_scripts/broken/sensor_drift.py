"""Predict battery wear from sensor readings; the field data come from a hotter season."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def readings(n, temperature, seed):
    g = torch.Generator().manual_seed(seed)
    temp = temperature + 8.0 * torch.randn(n, generator=g)
    current = 5.0 + 1.5 * torch.randn(n, generator=g)
    cycles = 200.0 + 60.0 * torch.randn(n, generator=g)
    wear = 0.05 * temp + 0.2 * current + 0.004 * cycles + 0.1 * torch.randn(n, generator=g)
    return torch.stack([temp, current, cycles], dim=1), wear


class Standardizer:
    def fit(self, x):
        self.mean = x.mean(0, keepdim=True)
        self.std = x.std(0, keepdim=True)
        return self

    def __call__(self, x):
        return (x - self.mean) / self.std

    def fit_transform(self, x):
        return self.fit(x)(x)


class WearNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def train(model, loader, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.HuberLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: huber {total / len(loader):.4f}")


torch.manual_seed(0)
torch.set_num_threads(1)
x_train, y_train = readings(800, temperature=20.0, seed=0)
x_test, y_test = readings(300, temperature=32.0, seed=1)
scaler = Standardizer()
x_train = scaler.fit_transform(x_train)
x_test = scaler.fit_transform(x_test)  # here
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
model = WearNet()
train(model, loader, epochs=6)
model.eval()
with torch.no_grad():
    mae = (model(x_test) - y_test).abs().mean().item()
print(f"test mae {mae:.4f} (std of wear {y_test.std().item():.4f})")
