"""Classifier evaluated with an exponential moving average of its weights."""

import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Opt:
    epochs: int = 8
    decay: float = 0.95
    lr: float = 0.1
    batch: int = 16


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.steps = 0
        self.shadow = copy.deepcopy(model).eval()
        self.shadow.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.steps += 1
        d = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - d)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)


def make_model():
    return nn.Sequential(nn.Linear(8, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))


@torch.no_grad()
def nll(model, x, y):
    was = model.training
    model.eval()
    out = F.cross_entropy(model(x), y).item()
    model.train(was)
    return out


def main():
    o = Opt()
    torch.manual_seed(0)
    centres = torch.randn(4, 8)
    y = torch.randint(0, 4, (360,))
    x = centres[y] + 0.9 * torch.randn(360, 8)
    loader = DataLoader(TensorDataset(x[:240], y[:240]), batch_size=o.batch, shuffle=True)
    model = make_model()
    ema = EMA(model, o.decay)
    opt = torch.optim.SGD(model.parameters(), lr=o.lr, momentum=0.9, nesterov=True)
    model.train()
    for epoch in range(o.epochs):
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
        print(f"{epoch} raw {nll(model, x[240:], y[240:]):.4f} ema {nll(ema.shadow, x[240:], y[240:]):.4f}")


if __name__ == "__main__":
    main()
