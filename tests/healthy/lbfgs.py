"""L-BFGS calls its closure several times a step; the closure clears the gradients each time."""

import torch

torch.manual_seed(0)
x, y = torch.tensor([-1.2, 1.0], requires_grad=True), torch.tensor([0.5], requires_grad=True)
optimizer = torch.optim.LBFGS([x, y], lr=0.5, max_iter=6, line_search_fn="strong_wolfe")
numbers = []


def closure():
    optimizer.zero_grad()
    loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2 + (y - x.sum()).pow(2).sum()
    loss.backward()
    return loss


for _ in range(4):
    numbers.append(optimizer.step(closure).item())
numbers += x.tolist()
