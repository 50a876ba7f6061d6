"""River level from rain and temperature; scaling is part of the model for deployment."""

import io
import logging
import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

log = logging.getLogger("river")
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s: %(message)s")


class Standardise(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.register_buffer("mean", data.mean(0))
        self.register_buffer("std", data.std(0))

    def forward(self, x):
        return (x - self.mean) / self.std

    def inverse(self, z):
        return z * self.std + self.mean


class RiverModel(nn.Module):
    def __init__(self, x_train, y_train, hidden=24):
        super().__init__()
        self.x_scale, self.y_scale = Standardise(x_train), Standardise(y_train)
        self.net = nn.Sequential(nn.Linear(x_train.size(1), hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(self.x_scale(x))

    @torch.no_grad()
    def level(self, x):
        return self.y_scale.inverse(self.forward(x))


def hydrology(n=500):
    g = torch.Generator().manual_seed(12)
    rain = 10 * torch.rand(n, 4, generator=g)
    temp = 8 + 6 * torch.randn(n, 1, generator=g)
    level = 120 + rain @ torch.tensor([[3.0], [2.0], [1.0], [0.5]]) - 0.4 * temp
    return torch.cat([rain, temp], 1), level + torch.randn(n, 1, generator=g)


def fit(model, loader, epochs):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), model.y_scale(y))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 5 == 0:
            log.info("epoch %d scaled mse %.4f", epoch, total / len(loader))


def main():
    torch.manual_seed(0)
    x, y = hydrology()
    train_set, test_set = random_split(TensorDataset(x, y), [400, 100])
    xt, yt = x[train_set.indices], y[train_set.indices]
    model = RiverModel(xt, yt)
    fit(model, DataLoader(train_set, batch_size=25, shuffle=True), epochs=8)
    blob = io.BytesIO()
    torch.save(model.state_dict(), blob)
    xs, ys = x[test_set.indices], y[test_set.indices]
    mae = (model.level(xs) - ys).abs().mean().item()
    log.info(
        "level mean %.1f std %.2f (data %.1f %.2f)",
        model.y_scale.mean.item(),
        model.y_scale.std.item(),
        yt.mean().item(),
        yt.std().item(),
    )
    log.info("test MAE in cm: %.2f, file %d bytes", mae, blob.getbuffer().nbytes)


if __name__ == "__main__":
    main()
