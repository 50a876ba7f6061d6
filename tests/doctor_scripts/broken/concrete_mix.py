import json
import random

import numpy as np
import torch
import torch.nn as nn


class PlateauDecay:
    """Lower the rate when the loss stops improving."""

    def __init__(self, optimizer, lr, factor=0.3, patience=2, min_lr=1e-4):
        self.optimizer = optimizer
        self.lr, self.factor, self.patience, self.min_lr = lr, factor, patience, min_lr
        self.best, self.wait = float("inf"), 0

    def step(self, loss):
        if loss < self.best * 0.98:
            self.best, self.wait = loss, 0
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.lr = max(self.lr * self.factor, self.min_lr)
            self.wait = 0
            self.optimizer.lr = self.lr  # here


def mixes(n=256):
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(n, 5)).astype(np.float32)  # cement, water, sand, gravel, age
    strength = 40 * x[:, 0] - 25 * x[:, 1] + 12 * np.log1p(8 * x[:, 4]) + rng.normal(0, 2, n)
    strength = (strength - strength.mean()) / strength.std()
    return torch.from_numpy(x), torch.from_numpy(strength.astype(np.float32))


class StrengthModel(nn.Module):
    def __init__(self, hidden=(32, 32)):
        super().__init__()
        dims = [5, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.out = nn.Linear(dims[-1], 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.silu(layer(x))
        return self.out(x).squeeze(-1)


def run(config):
    random.seed(config["seed"])
    torch.manual_seed(config["seed"])
    x, y = mixes()
    model = StrengthModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    decay = PlateauDecay(optimizer, config["lr"])
    record = []
    for epoch in range(config["epochs"]):
        losses = []
        for idx in torch.randperm(len(x)).split(config["batch_size"]):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        decay.step(mean)
        record.append({"epoch": epoch, "loss": round(mean, 4), "lr": optimizer.param_groups[0]["lr"]})
    return record


def main():
    config = {"lr": 0.08, "epochs": 10, "batch_size": 16, "seed": 0}
    for row in run(config)[::5]:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
