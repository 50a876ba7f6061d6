import logging
import sys
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("train")


@dataclass
class TrainConfig:
    epochs: int = 8
    batch_size: int = 16
    max_lr: float = 0.05
    width: int = 24


def vibration_data(n=160, length=32):
    """Bearing vibration: predict the severity of a fault from the signal."""
    g = torch.Generator().manual_seed(6)
    sev = torch.rand(n, generator=g)
    t = torch.arange(length)
    carrier = torch.sin(0.9 * t + 6.28 * torch.rand(n, 1, generator=g))
    x = sev[:, None] * carrier + 0.1 * torch.randn(n, length, generator=g)
    return x.unsqueeze(1), sev.unsqueeze(1)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(1, width, 7, padding=3)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.conv(x))
        return self.head(h.mean(-1))


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        x, y = vibration_data()
        self.loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
        self.model = Net(cfg.width)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.sched = OneCycleLR(self.opt, max_lr=cfg.max_lr, total_steps=cfg.epochs)  # here

    def run(self):
        loss_fn = nn.MSELoss()
        for epoch in range(self.cfg.epochs):
            total = 0.0
            for x, y in self.loader:
                self.opt.zero_grad()
                loss = loss_fn(self.model(x), y)
                loss.backward()
                self.opt.step()
                self.sched.step()  # here
                total += loss.item()
            log.info("epoch %d mse %.4f lr %.4f", epoch, total / len(self.loader), self.sched.get_last_lr()[0])


if __name__ == "__main__":
    torch.manual_seed(0)
    Runner(TrainConfig()).run()
