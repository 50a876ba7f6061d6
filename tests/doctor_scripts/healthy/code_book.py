"""VQ-VAE with straight-through codes and an EMA codebook kept in buffers."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Quantiser(nn.Module):
    def __init__(self, n_codes, dim, decay=0.9, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("count", torch.ones(n_codes))
        self.register_buffer("total", codes.clone())

    def forward(self, z):
        idx = torch.cdist(z.detach(), self.codes).argmin(1)
        q = self.codes[idx]
        if self.training:
            self.update(z.detach(), idx)
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, idx

    @torch.no_grad()
    def update(self, z, idx):
        hot = F.one_hot(idx, len(self.codes)).type_as(z)
        self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hot.T @ z, alpha=1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.total / smooth[:, None])


class VQVAE(nn.Module):
    def __init__(self, d=16, dim=4, n_codes=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, dim))
        self.vq = Quantiser(n_codes, dim)
        self.dec = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        q, commit, idx = self.vq(self.enc(x))
        return self.dec(q), commit, idx


def main():
    torch.manual_seed(0)
    protos = torch.randn(8, 16)
    data = protos[torch.randint(0, 8, (512,))] + 0.1 * torch.randn(512, 16)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = VQVAE()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(20):
        model.train()
        for x in loader:
            rec, commit, idx = model(x)
            loss = F.mse_loss(rec, x) + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                rec, _, idx = model(data)
                print(f"epoch {epoch + 1} mse {F.mse_loss(rec, data).item():.4f} codes used {idx.unique().numel()}")


if __name__ == "__main__":
    main()
