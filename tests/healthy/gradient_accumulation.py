"""Four micro-batches a step add up their gradients on purpose; zero_grad comes after the step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(32, 4)
y = x @ torch.randn(4, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
numbers, optimizer_steps = [], 0
for _ in range(3):
    for micro in range(8):
        part = slice(4 * micro, 4 * micro + 4)
        loss = nn.functional.mse_loss(model(x[part]), y[part]) / 4
        loss.backward()
        numbers.append(model.weight.grad.norm().item())
        if micro % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
