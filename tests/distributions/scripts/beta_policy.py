"""Proximal policy optimisation with a Beta policy: log_prob ratios, entropies, implicit gradients of rsample."""

import torch
from torch import nn
from torch.distributions import Beta, Dirichlet, Gamma, kl_divergence

torch.manual_seed(6)
network = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softplus())


def policy(states):
    a, b = (network(states) + 1).unbind(-1)
    return Beta(a, b)


states = torch.rand(32, 2)
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
for _ in range(5):
    with torch.no_grad():
        old = policy(states)
        actions = old.sample().clamp(1e-4, 1 - 1e-4)
        old_log_prob = old.log_prob(actions)
    advantages = -(actions - states.mean(-1)).abs()
    advantages = (advantages - advantages.mean()) / advantages.std()
    for _ in range(4):
        new = policy(states)
        ratio = (new.log_prob(actions) - old_log_prob).exp()
        surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        loss = -surrogate.mean() - 0.001 * new.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f} {kl_divergence(old, new).mean().item():.4f}")

shape = torch.tensor([0.5, 3.0, 20.0], requires_grad=True)
(Gamma(shape, 2.0).rsample((4,)).sum() + Dirichlet(shape).rsample((2,))[:, 0].sum()).backward()
print([f"{one:.3f}" for one in shape.grad.tolist()])
