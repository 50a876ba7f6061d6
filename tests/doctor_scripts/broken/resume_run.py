import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.a = nn.Linear(d, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.b(torch.relu(self.a(x))))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.backbone = Backbone(10, cfg["width"])
        self.head = nn.Linear(cfg["width"], 1)
        params = [*self.backbone.parameters(), *self.head.parameters()]
        self.opt = torch.optim.AdamW(params, lr=cfg["lr"])
        self.epoch = 0

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.cfg["amp"]):  # here
            h = self.backbone(x)
        return self.head(h).squeeze(-1)  # here

    def train_epoch(self, loader):
        total = 0.0
        for x, y in loader:
            pred = self.forward(x)
            loss = nn.functional.huber_loss(pred, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        self.epoch += 1
        return total / len(loader)

    def save(self, path):
        torch.save(
            {
                "backbone": self.backbone.state_dict(),
                "head": self.head.state_dict(),
                "opt": self.opt.state_dict(),
                "epoch": self.epoch,
            },
            path,
        )

    def load(self, path):
        ck = torch.load(path)
        self.backbone.load_state_dict(ck["backbone"])
        self.head.load_state_dict(ck["head"])
        self.opt.load_state_dict(ck["opt"])
        self.epoch = ck["epoch"]


def main():
    torch.manual_seed(0)
    cfg = {"width": 48, "lr": 5e-3, "amp": True}
    x = torch.randn(320, 10)
    y = (x[:, 0] * x[:, 1]).tanh() + x[:, 2]
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    trainer = Trainer(cfg)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "last.pt")
        for _ in range(4):
            print("epoch", trainer.epoch, "loss", round(trainer.train_epoch(loader), 4))
            trainer.save(path)
        resumed = Trainer(cfg)
        resumed.load(path)
    for _ in range(3):
        print("resumed epoch", resumed.epoch, "loss", round(resumed.train_epoch(loader), 4))


if __name__ == "__main__":
    main()
