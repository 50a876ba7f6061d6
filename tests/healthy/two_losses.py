"""Two losses share an encoder and run backward one after the other, the first with retain_graph."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, left, right = nn.Linear(3, 6), nn.Linear(6, 1), nn.Linear(6, 2)
params = [*encoder.parameters(), *left.parameters(), *right.parameters()]
optimizer = torch.optim.SGD(params, lr=0.05)
x, y, labels, numbers = torch.randn(10, 3), torch.randn(10, 1), torch.randint(0, 2, (10,)), []
for _ in range(5):
    hidden = torch.tanh(encoder(x))
    regression = nn.functional.mse_loss(left(hidden), y)
    classes = nn.functional.cross_entropy(right(hidden), labels)
    optimizer.zero_grad()
    regression.backward(retain_graph=True)
    (0.5 * classes).backward()
    optimizer.step()
    numbers += [regression.item(), classes.item()]
