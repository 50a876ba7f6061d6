"""Learning rates: warm-up, cosine, and a plateau watched by the loss."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
x, y, numbers = torch.randn(16, 3), torch.randn(16, 1), []
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm.step()
    numbers += [loss.item(), warm.get_last_lr()[0]]
again = torch.optim.SGD(model.parameters(), lr=0.1)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(again, 5)
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    again.zero_grad()
    loss.backward()
    again.step()
    cosine.step()
    numbers.append(loss.item())
