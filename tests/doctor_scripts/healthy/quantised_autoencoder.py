import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    """Nearest code with the straight-through estimator; unused codes get no gradient."""

    def __init__(self, n_codes=16, dim=4, beta=0.25):
        super().__init__()
        self.codes = nn.Embedding(n_codes, dim)
        nn.init.normal_(self.codes.weight)
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes.weight.detach()).argmin(dim=1)
        q = self.codes(index)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self, n_in=12, dim=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 24), nn.ReLU(), nn.Linear(24, dim))
        self.quantizer = Quantizer(dim=dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, n_in))

    def forward(self, x):
        q, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(q), vq_loss, index


def main():
    torch.manual_seed(0)
    data = torch.randn(6, 12)[torch.randint(0, 6, (96,))] + 0.05 * torch.randn(96, 12)
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(60):
        recon, vq_loss, index = model(data)
        loss = F.mse_loss(recon, data) + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 20 == 19:
            print(f"{epoch} loss {loss.item():.3f} codes used {index.unique().numel()}")


if __name__ == "__main__":
    main()
