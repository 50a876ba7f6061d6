"""Multi-task net for sensors; the second task joins later."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    stage1: int = 3
    stage2: int = 5
    clamp: float = 0.1
    lr: float = 0.05
    seed: int = 4


class SensorNet(nn.Module):
    def __init__(self, channels=6, width=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(channels, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.temp_head = nn.Linear(width, 1)
        self.fault_head = nn.Linear(width, 3)

    def forward(self, x, with_fault):
        h = self.shared(x)
        temp = self.temp_head(h).squeeze(-1)
        return temp, self.fault_head(h) if with_fault else None


def clamp_gradients(model, limit):
    for p in model.parameters():
        p.grad.data.clamp_(-limit, limit)  # here


def readings(n=240):
    g = torch.Generator().manual_seed(2)
    x = torch.randn(n, 6, generator=g)
    temp = x[:, 0] - 0.5 * x[:, 1]
    fault = x[:, 2:5].argmax(1)
    return TensorDataset(x, temp, fault)


def run_stage(model, opt, loader, epochs, with_fault, cfg):
    for epoch in range(epochs):
        for x, temp, fault in loader:
            temp_hat, fault_logits = model(x, with_fault)
            loss = F.mse_loss(temp_hat, temp)
            if with_fault:
                loss = loss + F.cross_entropy(fault_logits, fault)
            opt.zero_grad()
            loss.backward()
            clamp_gradients(model, cfg.clamp)  # here
            opt.step()
        print(f"{'both' if with_fault else 'temp'} epoch {epoch} loss {loss.item():.4f}")


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    loader = DataLoader(readings(), batch_size=24, shuffle=True)
    model = SensorNet()
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    run_stage(model, opt, loader, cfg.stage1, False, cfg)
    run_stage(model, opt, loader, cfg.stage2, True, cfg)


if __name__ == "__main__":
    main()
