"""One inner step of the weights that is differentiated itself (MAML)."""

import torch
from torch.nn import functional as F

torch.manual_seed(0)
w, b = torch.randn(1, 3, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([w, b], lr=0.05)
numbers = []
for _ in range(4):
    total = 0.0
    optimizer.zero_grad()
    for task in range(2):
        x = torch.randn(6, 3)
        y = x.sum(1, keepdim=True) * (task + 1)
        slopes = torch.autograd.grad(F.mse_loss(F.linear(x, w, b), y), [w, b], create_graph=True)
        fast_w, fast_b = w - 0.1 * slopes[0], b - 0.1 * slopes[1]
        loss = F.mse_loss(F.linear(x, fast_w, fast_b), y)
        loss.backward()
        total += loss.item()
    optimizer.step()
    numbers.append(total)
