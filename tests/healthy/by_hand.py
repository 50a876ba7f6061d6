"""Logistic regression without nn or optim: weights updated under no_grad, gradients cleared with zero_()."""

import torch

torch.manual_seed(0)
x = torch.randn(40, 2)
y = (x[:, 0] - x[:, 1] > 0).float()
w, b = torch.zeros(2, requires_grad=True), torch.zeros((), requires_grad=True)
numbers = []
for _ in range(10):
    chance = torch.sigmoid(x @ w + b)
    loss = -(y * torch.log(chance) + (1 - y) * torch.log(1 - chance)).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
        b -= 0.5 * b.grad
        w.grad.zero_()
        b.grad.zero_()
    numbers.append(loss.item())
numbers += w.tolist()
