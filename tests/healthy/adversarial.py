"""Adversarial examples in several steps: each makes a new leaf of the one before, on purpose."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
x, y, numbers = torch.randn(6, 4), torch.randint(0, 2, (6,)), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    attacked = x + 0.01 * torch.randn(6, 4)
    for _ in range(3):
        attacked = attacked.detach().requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(model(attacked), y), attacked)
        attacked = torch.clamp(attacked + 0.1 * slope.sign(), x - 0.3, x + 0.3)
    loss = F.cross_entropy(model(attacked.detach()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
