"""Schedulers that this run does not step itself: stepped by another, or only after more epochs than there are here."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedulers = torch.optim.lr_scheduler
warming, falling = schedulers.ConstantLR(optimizer, 0.5, 4), schedulers.ExponentialLR(optimizer, 0.9)
both = schedulers.SequentialLR(optimizer, [warming, falling], [4])
rare = schedulers.StepLR(optimizer, step_size=2)
numbers = []
for epoch in range(16):
    loss = (model(torch.randn(8, 3)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    both.step()
    if epoch % 20 == 19:
        rare.step()
    numbers.append(loss.item())
