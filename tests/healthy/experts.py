"""A mixture of experts: some steps use only one of them, and no gradient reaches the other then."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 1)])

    def forward(self, x, number):
        return self.experts[number](x)


torch.manual_seed(0)
model, numbers = Mixture(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    x = torch.randn(4, 3)
    loss = (model(x, step % 3) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
