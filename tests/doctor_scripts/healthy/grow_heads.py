"""Staged training: main task first, extra head and upper layers join later as new groups."""

import logging
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.high = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.main_head = nn.Linear(32, 3)
        self.extra_head = nn.Linear(32, 1)  # unused in the first stage

    def forward(self, x, extra=False):
        h = self.high(self.low(x))
        if extra:
            return self.main_head(h), self.extra_head(h).squeeze(-1)
        return self.main_head(h), None


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def loop(model, opt, loader, epochs, extra, tag):
    for e in range(epochs):
        model.train()
        for x, y, r in loader:
            logits, reg = model(x, extra)
            loss = F.cross_entropy(logits, y)
            if extra:
                loss = loss + 0.5 * F.mse_loss(reg, r)
            opt.zero_grad()
            loss.backward()
            opt.step()
        logging.info("%s %d loss %.4f groups %d", tag, e, loss.item(), len(opt.param_groups))


def main():
    torch.manual_seed(0)
    x = torch.randn(300, 10)
    y = x[:, :3].argmax(1)
    r = x[:, 3] - x[:, 4]
    loader = DataLoader(TensorDataset(x, y, r), batch_size=30, shuffle=True)
    model = Staged()

    set_trainable(model.low, False)
    opt = torch.optim.Adam(
        [
            {"params": model.high.parameters(), "lr": 5e-3},
            {"params": model.main_head.parameters(), "lr": 1e-2},
        ]
    )
    low_before = model.low[0].weight.clone()
    loop(model, opt, loader, 4, False, "stage 1")
    assert torch.equal(low_before, model.low[0].weight)
    assert model.extra_head.weight.grad is None

    opt.add_param_group({"params": model.extra_head.parameters(), "lr": 1e-2})
    loop(model, opt, loader, 4, True, "stage 2")

    set_trainable(model.low, True)
    opt.add_param_group({"params": model.low.parameters(), "lr": 1e-3})
    loop(model, opt, loader, 4, True, "stage 3")


if __name__ == "__main__":
    main()
