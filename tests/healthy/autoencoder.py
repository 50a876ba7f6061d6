"""A variational autoencoder: noise by the reparametrisation trick, two losses added."""

import torch
from torch import nn
from torch.nn import functional as F


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.spread = nn.Linear(8, 6), nn.Linear(6, 2), nn.Linear(6, 2)
        self.decode = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 8))

    def forward(self, x):
        hidden = F.relu(self.encode(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        code = mean + torch.exp(0.5 * spread) * torch.randn_like(mean)
        return self.decode(code), mean, spread


torch.manual_seed(0)
model, x, numbers = Autoencoder(), torch.rand(12, 8), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    made, mean, spread = model(x)
    wrong = F.binary_cross_entropy_with_logits(made, x, reduction="sum")
    far = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
    optimizer.zero_grad()
    (wrong + far).backward()
    optimizer.step()
    numbers += [wrong.item(), far.item()]
