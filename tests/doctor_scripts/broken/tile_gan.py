import torch
import torch.nn as nn


class GAN:
    def __init__(self, z_dim=6, x_dim=8):
        self.z_dim = z_dim
        self.G = nn.Sequential(nn.Linear(z_dim, 24), nn.ReLU(), nn.Linear(24, x_dim), nn.Tanh())
        self.D = nn.Sequential(nn.Linear(x_dim, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=2e-3, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        n = real.size(0)
        ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
        self.opt_g.zero_grad()
        self.opt_d.zero_grad()

        fake = self.G(torch.randn(n, self.z_dim))
        d_loss = self.bce(self.D(real), ones) + self.bce(self.D(fake), zeros)  # here
        d_loss.backward()
        self.opt_d.step()

        fake = self.G(torch.randn(n, self.z_dim))
        g_loss = self.bce(self.D(fake), ones)
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


def tiles(n):
    base = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    flip = torch.randint(0, 2, (n, 1)) * 2.0 - 1.0
    return base * flip * 0.8 + 0.05 * torch.randn(n, 8)


def main():
    torch.manual_seed(0)
    gan = GAN()
    for it in range(60):
        d_loss, g_loss = gan.step(tiles(32))
        if it % 20 == 0:
            print(f"iter {it} d {d_loss:.3f} g {g_loss:.3f}")


if __name__ == "__main__":
    main()
