"""Small VAE on 8x8 images of a blob at a random place."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader


@dataclass
class Args:
    latent: int = 2
    hidden: int = 64
    epochs: int = 12
    batch_size: int = 64
    lr: float = 3e-3


def blobs(n):
    g = torch.Generator().manual_seed(0)
    centre = 1.5 + 5 * torch.rand(n, 2, generator=g)
    grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij"), -1)
    d2 = (grid[None] - centre[:, None, None]).pow(2).sum(-1)
    return torch.exp(-d2 / 3.0).view(n, 64)


class Encoder(nn.Module):
    def __init__(self, hidden, latent):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.log_std = nn.Linear(hidden, latent)

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mu(h), self.log_std(h).clamp(-5, 2).exp())


class VAE(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.encoder = Encoder(args.hidden, args.latent)
        self.decoder = nn.Sequential(nn.Linear(args.latent, args.hidden), nn.ReLU(), nn.Linear(args.hidden, 64))

    def forward(self, x):
        q = self.encoder(x)
        z = q.sample()  # here
        return self.decoder(z), q


def elbo(model, x):
    logits, q = model(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    prior = Normal(torch.zeros_like(q.loc), torch.ones_like(q.scale))
    kl = kl_divergence(q, prior).sum(1)
    return rec.mean(), kl.mean()


def main():
    args = Args()
    torch.manual_seed(0)
    loader = DataLoader(blobs(512), batch_size=args.batch_size, shuffle=True)
    model = VAE(args)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sums = torch.zeros(2)
        for x in loader:
            rec, kl = elbo(model, x)
            opt.zero_grad()
            (rec + kl).backward()
            opt.step()
            sums += torch.tensor([rec.item(), kl.item()])
        rec, kl = (sums / len(loader)).tolist()
        print(f"epoch {epoch:2d} rec {rec:.3f} kl {kl:.3f}")


if __name__ == "__main__":
    main()
