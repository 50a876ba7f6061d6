"""Discrete latent codes, relaxed: RelaxedOneHotCategorical and the straight-through estimator."""

import torch
from torch.distributions import OneHotCategorical, OneHotCategoricalStraightThrough, RelaxedOneHotCategorical

torch.manual_seed(8)
codes = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
target = torch.tensor([[0.0, 1.0], [-1.0, -1.0]])
logits = torch.zeros(2, 3, requires_grad=True)
optimizer = torch.optim.Adam([logits], lr=0.2)
for step in range(40):
    relaxed = RelaxedOneHotCategorical(torch.tensor(max(0.3, 1 - step / 40)), logits=logits)
    loss = (relaxed.rsample((8,)) @ codes - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"{loss.item():.3f}", [f"{one:.2f}" for one in relaxed.probs.flatten().tolist()])
straight = OneHotCategoricalStraightThrough(logits=logits.detach().requires_grad_())
sample = straight.rsample()
print(sample.tolist(), OneHotCategorical(logits=logits).mode.tolist(), sample.requires_grad)
