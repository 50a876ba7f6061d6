"""Bayes by backprop: weights with a normal posterior and a prior that is a mixture of two normal distributions."""

import math

import torch
import torch.distributions as D
from torch import nn

torch.manual_seed(5)


class BayesianLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.loc = nn.Parameter(torch.randn(outputs, inputs + 1) * 0.1)
        self.rho = nn.Parameter(torch.full((outputs, inputs + 1), -3.0))
        mixed = D.Categorical(torch.tensor([0.5, 0.5]))
        self.prior = D.MixtureSameFamily(mixed, D.Normal(torch.zeros(2), torch.tensor([1.0, math.exp(-2)])))

    def forward(self, x):
        posterior = D.Normal(self.loc, torch.nn.functional.softplus(self.rho))
        weights = posterior.rsample()
        self.complexity = (posterior.log_prob(weights) - self.prior.log_prob(weights)).sum()
        return x @ weights[:, :-1].T + weights[:, -1]


x = torch.linspace(-1, 1, 24).unsqueeze(-1)
y = (2 * x).sin() + 0.1 * torch.randn(24, 1)
first, last = BayesianLinear(1, 8), BayesianLinear(8, 1)
optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=0.02)
for step in range(40):
    predicted = last(first(x).tanh())
    likelihood = D.Normal(predicted, 0.1).log_prob(y).sum()
    loss = (first.complexity + last.complexity) / 10 - likelihood
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: {loss.item():.2f}")
with torch.no_grad():
    draws = torch.stack([last(first(x).tanh()) for _ in range(50)])
print(f"{draws.mean(0)[0].item():.3f} {draws.std(0).mean().item():.3f}")
