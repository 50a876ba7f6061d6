"""Learning rates that are 0 for a step or two: warm-up that begins at 0, decay that ends there."""

import torch
from torch import nn

torch.manual_seed(0)
numbers = []
for make in (
    lambda one: torch.optim.lr_scheduler.LambdaLR(one, lambda step: min(1.0, step / 4)),
    lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, T_max=24),
    lambda one: torch.optim.lr_scheduler.OneCycleLR(one, max_lr=0.1, total_steps=24),
    lambda one: torch.optim.lr_scheduler.StepLR(one, step_size=2, gamma=0.3),
):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = make(optimizer)
    for epoch in range(4):
        for batch in range(6):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
            if not isinstance(scheduler, torch.optim.lr_scheduler.StepLR) and epoch * 6 + batch < 23:
                scheduler.step()
        if isinstance(scheduler, torch.optim.lr_scheduler.StepLR):
            scheduler.step()
        numbers.append(loss.item())
