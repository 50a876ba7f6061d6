"""Conditional GAN that draws 5x5 letters."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

GLYPHS = {
    "T": ["#####", "..#..", "..#..", "..#..", "..#.."],
    "L": ["#....", "#....", "#....", "#....", "#####"],
    "O": ["#####", "#...#", "#...#", "#...#", "#####"],
}


def glyph_data(copies):
    proto = torch.tensor([[[c == "#" for c in row] for row in g] for g in GLYPHS.values()])
    proto = proto.float().flatten(1) * 2 - 1
    y = torch.arange(len(GLYPHS)).repeat(copies)
    return TensorDataset(proto[y] + 0.1 * torch.randn(len(y), 25), y)


class G(nn.Module):
    def __init__(self, z=8, n=3):
        super().__init__()
        self.z = z
        self.emb = nn.Embedding(n, 8)
        self.net = nn.Sequential(nn.Linear(z + 8, 64), nn.ReLU(), nn.Linear(64, 25), nn.Tanh())

    def forward(self, y):
        noise = torch.randn(len(y), self.z)
        return self.net(torch.cat([noise, self.emb(y)], 1))


class D(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.emb = nn.Embedding(n, 8)
        self.net = nn.Sequential(nn.Linear(33, 64), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1))

    def forward(self, x, y):
        return self.net(torch.cat([x, self.emb(y)], 1)).squeeze(1)


def train(args):
    gen, disc = G(), D()
    g_opt = torch.optim.Adam(gen.parameters(), lr=args.lr, betas=(0.5, 0.99))
    d_opt = torch.optim.Adam(disc.parameters(), lr=args.lr, betas=(0.5, 0.99))
    loader = DataLoader(glyph_data(40), batch_size=30, shuffle=True)
    for epoch in range(args.epochs):
        for real, y in loader:
            fake = gen(y)

            d_opt.zero_grad()
            d_real = disc(real, y)
            d_fake = disc(fake.detach(), y)
            d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
            d_loss.backward()
            d_opt.step()

            g_opt.zero_grad()
            g_loss = F.softplus(-disc(fake, y)).mean()
            g_loss.backward()
            g_opt.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch} D {d_loss.item():.3f} G {g_loss.item():.3f}")
    return gen


def show(gen):
    gen.eval()
    with torch.no_grad():
        for img in gen(torch.arange(3)).view(3, 5, 5):
            print("\n".join("".join("#" if v > 0 else "." for v in row) for row in img))
            print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=2e-3)
    torch.manual_seed(0)
    show(train(parser.parse_args()))
