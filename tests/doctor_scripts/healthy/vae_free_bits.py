"""VAE with hand-written reparametrisation, KL warm-up and free bits."""

import torch
from torch import nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, d=16, z=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 48), nn.ELU(), nn.Linear(48, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 48), nn.ELU(), nn.Linear(48, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        return self.dec(z), mu, logvar


def main():
    torch.manual_seed(17)
    x = torch.bernoulli(torch.sigmoid(4 * torch.randn(600, 3) @ torch.randn(3, 16)))
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(20):
        beta = min(1.0, (epoch + 1) / 10)
        sums = [0.0, 0.0]
        for idx in torch.randperm(600).split(60):
            logits, mu, logvar = model(x[idx])
            recon = F.binary_cross_entropy_with_logits(logits, x[idx], reduction="none").sum(1).mean()
            kl_dim = (-0.5 * (1 + logvar - mu.pow(2) - logvar.exp())).mean(0)
            loss = recon + beta * kl_dim.clamp(min=0.1).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums[0] += recon.item() / 10
            sums[1] += kl_dim.sum().item() / 10
        if epoch % 5 == 0 or epoch == 19:
            print(epoch, "recon", round(sums[0], 3), "kl", round(sums[1], 3))


if __name__ == "__main__":
    main()
