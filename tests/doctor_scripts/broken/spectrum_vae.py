import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n_in=16, hidden=24, latent=3):
        super().__init__()
        self.enc = nn.Linear(n_in, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec1 = nn.Linear(latent, hidden)
        self.dec2 = nn.Linear(hidden, n_in)

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)

    def decode(self, z):
        return self.dec2(F.relu(self.dec1(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    recon = F.mse_loss(recon_x, x, reduction="sum") / x.size(0)
    kl = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.size(0)  # here
    return recon + kl


def main():
    torch.manual_seed(0)
    spectra = torch.randn(96, 3) @ torch.randn(3, 16)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(25):
        total = 0.0
        for batch in spectra[torch.randperm(96)].split(24):
            optimizer.zero_grad()
            recon, mu, logvar = model(batch)
            loss = loss_function(recon, batch, mu, logvar)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {total / 4:.2f}")


if __name__ == "__main__":
    main()
