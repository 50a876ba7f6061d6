"""A variational autoencoder of small pictures: Normal, rsample, kl_divergence, Bernoulli."""

import torch
from torch import nn
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence

torch.manual_seed(0)
pictures = Bernoulli(torch.rand(4, 1, 16).repeat(1, 8, 1).reshape(32, 16)).sample()


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 12), nn.Tanh())
        self.loc, self.log_scale = nn.Linear(12, 2), nn.Linear(12, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 16))

    def forward(self, x):
        hidden = self.encoder(x)
        posterior = Independent(Normal(self.loc(hidden), self.log_scale(hidden).exp()), 1)
        return posterior, Independent(Bernoulli(logits=self.decoder(posterior.rsample())), 1)


model = Autoencoder()
prior = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(30):
    posterior, decoded = model(pictures)
    loss = (kl_divergence(posterior, prior) - decoded.log_prob(pictures)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: negative ELBO {loss.item():.3f}")
print(posterior)
print([f"{size:.3f}" for size in decoded.mean.mean(0)[:4].tolist()])
