"""A frozen backbone and a head that learns; the norm of every gradient is logged, those of frozen ones are None."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
model = nn.Sequential(backbone, nn.Linear(8, 3))
for parameter in backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=0.05)
x, y, numbers = torch.randn(12, 4), torch.randint(0, 3, (12,)), []
for _ in range(5):
    backbone.eval()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norms = [one.grad.norm().item() for one in model.parameters() if one.grad is not None]
    optimizer.step()
    numbers += [loss.item(), *norms]
