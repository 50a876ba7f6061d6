"""A variational autoencoder on striped images."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class VAE(nn.Module):
    def __init__(self, size: int = 16, hidden: int = 12, latent: int = 2):
        super().__init__()
        self.encoder = nn.Linear(size, hidden)
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, size), nn.Sigmoid())

    def forward(self, images: torch.Tensor):
        hidden = F.relu(self.encoder(images.view(-1, 16)))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        noise = torch.randn_like(mean)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


def loss_of(found, images, mean, log_variance):
    reconstruction = F.binary_cross_entropy(found, images.view(-1, 16), reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return reconstruction + divergence


images = torch.zeros(32, 1, 4, 4)
images[torch.arange(32), 0, torch.arange(32) % 4] = 1.0
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    total = 0.0
    for batch in images.split(8):
        optimizer.zero_grad()
        loss = loss_of(*(lambda out: (out[0], batch, *out[1:]))(model(batch)))
        loss.backward()
        total += loss.item()
        optimizer.step()
    print(f"epoch {epoch}: {total / len(images):.3f}")
model.eval()
with torch.no_grad():
    print(model.decoder(torch.zeros(1, 2)).shape, model.decoder(torch.randn(3, 2)).mean().item() > 0)
