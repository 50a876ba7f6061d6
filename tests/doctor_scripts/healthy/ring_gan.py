import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, z_dim=4):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(nn.Linear(z_dim, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, n):
        return self.net(torch.randn(n, self.z_dim))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def real_samples(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def train(iters=40, batch=32):
    G, D = Generator(), Discriminator()
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for it in range(iters):
        real, fake = real_samples(batch), G(batch)
        # smoothed labels for the real samples only
        d_loss = F.binary_cross_entropy_with_logits(D(real), torch.full((batch,), 0.9))
        d_loss = d_loss + F.binary_cross_entropy_with_logits(D(fake.detach()), torch.zeros(batch))
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        # the same fakes are scored again by the updated discriminator
        for p in D.parameters():
            p.requires_grad_(False)
        g_loss = F.binary_cross_entropy_with_logits(D(fake), torch.ones(batch))
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        for p in D.parameters():
            p.requires_grad_(True)
        if it % 10 == 0:
            print(f"{it:3d} d {d_loss.item():.3f} g {g_loss.item():.3f}")


def main():
    torch.manual_seed(0)
    train()


if __name__ == "__main__":
    main()
