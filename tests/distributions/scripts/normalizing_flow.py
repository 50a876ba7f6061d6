"""A planar stack of affine and sigmoid flows fitted to data, and constrained parameters by transform_to."""

import torch
from torch import nn
from torch.distributions import MultivariateNormal, TransformedDistribution, constraints, transform_to
from torch.distributions.transforms import AffineTransform, ComposeTransform, SigmoidTransform

torch.manual_seed(7)
data = MultivariateNormal(torch.tensor([1.0, -1.0]), torch.tensor([[1.0, 0.6], [0.6, 0.8]])).sample((200,)).sigmoid()

loc, free = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2, 2))
shift, stretch = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
to_factor, to_scale = transform_to(constraints.lower_cholesky), transform_to(constraints.positive)
optimizer = torch.optim.Adam([loc, free, shift, stretch], lr=0.05)
for step in range(60):
    flow = ComposeTransform([AffineTransform(shift, to_scale(stretch), event_dim=1), SigmoidTransform()])
    base = MultivariateNormal(loc, scale_tril=to_factor(free))
    density = TransformedDistribution(base, [flow])
    loss = -density.log_prob(data).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: {loss.item():.4f}")
print(density.event_shape, base, [f"{one:.2f}" for one in base.covariance_matrix.flatten().tolist()])
print(tuple(density.sample((3,)).shape))
