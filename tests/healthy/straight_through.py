"""Quantised codes with the straight-through trick x + (q - x).detach() (VQ-VAE), a codebook and a commitment."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder, decoder, codebook = nn.Linear(4, 2), nn.Linear(2, 4), nn.Embedding(5, 2)
params = [*encoder.parameters(), *decoder.parameters(), *codebook.parameters()]
optimizer = torch.optim.Adam(params, lr=0.01)
x, numbers = torch.randn(16, 4), []
for _ in range(5):
    z = encoder(x)
    nearest = torch.cdist(z, codebook.weight).argmin(1)
    q = codebook(nearest)
    made = decoder(z + (q - z).detach())
    loss = F.mse_loss(made, x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
