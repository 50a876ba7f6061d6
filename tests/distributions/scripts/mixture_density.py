"""A mixture density network: MixtureSameFamily whose weights, means and scales a network gives."""

import torch
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

torch.manual_seed(4)
x = torch.rand(64, 1) * 2 - 1
y = torch.where(torch.rand(64, 1) < 0.5, x, -x) + 0.05 * torch.randn(64, 1)
network = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9))


def mixture(inputs):
    weights, means, scales = network(inputs).chunk(3, -1)
    components = Independent(Normal(means.unsqueeze(-1), scales.exp().unsqueeze(-1)), 1)
    return MixtureSameFamily(Categorical(logits=weights), components)


optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
for step in range(40):
    loss = -mixture(x).log_prob(y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: {loss.item():.4f}")
with torch.no_grad():
    found = mixture(torch.tensor([[0.5]]))
    print(found)
    print(f"{found.mean.item():.3f} {found.variance.item():.3f}", found.sample((2,)).shape)
