"""GAN on points of a ring."""

import argparse
import math

import torch
import torch.nn as nn

bce = nn.BCEWithLogitsLoss()


def ring(n):
    a = 2 * math.pi * torch.rand(n)
    r = 2 + 0.1 * torch.randn(n)
    return torch.stack([r * a.cos(), r * a.sin()], dim=1)


class Generator(nn.Module):
    def __init__(self, z_dim, width):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(
            nn.Linear(z_dim, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 2),
        )

    def forward(self, n):
        return self.net(torch.randn(n, self.z_dim))


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x)


def d_step(D, opt, real, fake):
    opt.zero_grad()
    out_real, out_fake = D(real), D(fake.detach())
    loss = bce(out_real, torch.ones_like(out_real)) + bce(out_fake, torch.zeros_like(out_fake))
    loss.backward()
    opt.step()
    return loss.item()


def g_step(D, opt, fake):
    opt.zero_grad()
    out = D(fake.detach())  # here
    loss = bce(out, torch.ones_like(out))
    loss.backward()
    opt.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--z-dim", type=int, default=4)
    parser.add_argument("--width", type=int, default=48)
    args = parser.parse_args()

    torch.manual_seed(0)
    G, D = Generator(args.z_dim, args.width), Discriminator(args.width)
    g_opt = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for step in range(args.steps):
        fake = G(args.batch)
        d_loss = d_step(D, d_opt, ring(args.batch), fake)
        g_loss = g_step(D, g_opt, fake)
        if step % 50 == 0:
            with torch.no_grad():
                radius = G(256).norm(dim=1).mean().item()
            print(f"step {step:4d} D {d_loss:.3f} G {g_loss:.3f} mean radius {radius:.2f}")
    with torch.no_grad():
        print("final mean radius", round(G(512).norm(dim=1).mean().item(), 3), "(target 2.0)")


if __name__ == "__main__":
    main()
