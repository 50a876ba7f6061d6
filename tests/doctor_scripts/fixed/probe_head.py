"""Adapt a speech-like encoder to new speakers by swapping its last layer."""

import argparse
import logging
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger(__name__)


class TDNN(nn.Module):
    def __init__(self, n_mels, n_speakers):
        super().__init__()
        self.frames = nn.Sequential(
            nn.Conv1d(n_mels, 32, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(32, 32, 3, dilation=2, padding=2),
            nn.ReLU(),
        )
        self.fc = nn.Linear(64, n_speakers)

    def forward(self, mel):
        h = self.frames(mel)
        stats = torch.cat([h.mean(-1), h.std(-1)], dim=1)
        return self.fc(stats)


def speakers(n, count, seed, n_mels=10, frames=30):
    g = torch.Generator().manual_seed(seed)
    voice = torch.randn(count, n_mels, 1, generator=g)
    who = torch.randint(0, count, (n,), generator=g)
    return voice[who] + 0.8 * torch.randn(n, n_mels, frames, generator=g), who


def batches(x, y, size):
    order = torch.randperm(len(x))
    for i in range(0, len(x), size):
        idx = order[i : i + size]
        yield x[idx], y[idx]


def train(net, optimizer, x, y, epochs, tag):
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for xb, yb in batches(x, y, 32):
            loss = F.cross_entropy(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        logger.info("%s epoch %d loss %.4f", tag, epoch, total / len(x))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main(args):
    torch.manual_seed(args.seed)
    net = TDNN(10, 12)
    x, y = speakers(256, 12, seed=1)
    train(net, torch.optim.Adam(net.parameters(), lr=args.lr), x, y, 4, "pretrain")

    x, y = speakers(200, 20, seed=2)
    net.fc = nn.Linear(net.fc.in_features, 20)
    optimizer = torch.optim.Adam(
        [
            {"params": net.frames.parameters(), "lr": args.lr * 0.01},
            {"params": net.fc.parameters(), "lr": args.lr},
        ]
    )
    train(net, optimizer, x, y, 8, "adapt")
    logger.info("accuracy on new speakers %.3f", accuracy(net, x, y))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
