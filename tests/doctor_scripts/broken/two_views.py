"""Contrastive pretraining on shapelets, then nearest-neighbour evaluation."""

import argparse
import logging
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s", datefmt="%H:%M", level=logging.INFO)


class SeriesBank:
    """Four kinds of waves with random start, amplitude and noise."""

    def __init__(self, n, seed, length=48):
        g = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, 4, (n,), generator=g)
        self.freq = torch.tensor([2.0, 3.0, 5.0, 7.0])[self.kind]
        self.t = torch.linspace(0, 1, length)

    def view(self, idx):
        phase = 2 * math.pi * torch.rand(len(idx), 1)
        amp = 0.5 + torch.rand(len(idx), 1)
        wave = amp * torch.sin(2 * math.pi * self.freq[idx][:, None] * self.t + phase)
        return (wave + 0.3 * torch.randn_like(wave)).unsqueeze(1)


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.Conv1d(16, 24, 9, stride=2, padding=4), nn.ReLU()
        )
        self.proj = nn.Linear(24, dim)

    def forward(self, x):
        return F.normalize(self.proj(self.conv(x).mean(-1)), dim=1)


def info_nce(za, zb, tau):
    logits_a = za @ za.T / tau  # here
    logits_b = zb @ zb.T / tau  # here
    labels = torch.arange(len(za))
    return 0.5 * (F.cross_entropy(logits_a, labels) + F.cross_entropy(logits_b, labels))


@torch.no_grad()
def knn_accuracy(encoder, bank):
    encoder.eval()
    idx = torch.arange(len(bank.kind))
    a, b = encoder(bank.view(idx)), encoder(bank.view(idx))
    sim = a @ b.T
    sim.fill_diagonal_(-1)
    encoder.train()
    return (bank.kind[sim.argmax(1)] == bank.kind).float().mean().item()


def view_alignment(encoder, bank):
    with torch.no_grad():
        idx = torch.arange(len(bank.kind))
        return (encoder(bank.view(idx)) * encoder(bank.view(idx))).sum(1).mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--batch", type=int, default=48)
    p.add_argument("--tau", type=float, default=0.2)
    a = p.parse_args()
    torch.manual_seed(0)
    bank, test = SeriesBank(256, 0), SeriesBank(128, 1)
    enc = Encoder()
    opt = torch.optim.AdamW(enc.parameters(), lr=5e-3)
    for step in range(a.steps):
        idx = torch.randperm(256)[: a.batch]
        loss = info_nce(enc(bank.view(idx)), enc(bank.view(idx)), a.tau)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 24:
            logging.info(
                "step %d loss %.3f alignment %.3f knn %.3f",
                step + 1,
                loss.item(),
                view_alignment(enc, test),
                knn_accuracy(enc, test),
            )


if __name__ == "__main__":
    main()
