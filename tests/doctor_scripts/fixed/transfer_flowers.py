"""Fine-tune a small pretrained conv net on a new three-class task."""

import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    pre_steps: int = 30
    ft_steps: int = 40
    lr: float = 3e-3
    seed: int = 5


class ConvNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(24, num_classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def fake_images(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = 0.5 * torch.randn(n, 3, 16, 16, generator=g)
    tint = torch.eye(3).repeat(2, 1)[:classes]
    x += tint[y].view(n, 3, 1, 1) * (1 + (y >= 3).float()).view(n, 1, 1, 1)
    return x, y


def pretrain(cfg, path):
    net = ConvNet(6)
    x, y = fake_images(256, 6, 0)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    for _ in range(cfg.pre_steps):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.save(net.state_dict(), path)
    return loss.item()


def prepare(path, num_classes):
    net = ConvNet(6)
    net.load_state_dict(torch.load(path))
    net.classifier = nn.Linear(net.classifier.in_features, num_classes)
    for param in net.features.parameters():
        param.requires_grad = False
    return net


def finetune(cfg, net):
    x, y = fake_images(120, 3, 9)
    opt = torch.optim.Adam(net.classifier.parameters(), lr=cfg.lr * 10)
    for step in range(cfg.ft_steps):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print("step", step, "loss", round(loss.item(), 4))
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    with tempfile.TemporaryDirectory() as tmp:
        ckpt = os.path.join(tmp, "pre.pt")
        print("pretraining loss", pretrain(cfg, ckpt))
        net = prepare(ckpt, 3)
    print("train accuracy", finetune(cfg, net))


if __name__ == "__main__":
    main()
