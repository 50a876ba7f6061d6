"""Layers that begin at zero and leave it, a layer that is shared on purpose, and fixed networks that get gradients."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
shared = nn.Linear(8, 8)
layers = nn.ModuleList([shared] * 3)
down, up, head = nn.Linear(8, 2), nn.Linear(2, 8), nn.Linear(8, 3)
nn.init.zeros_(up.weight)
nn.init.zeros_(up.bias)
nn.init.zeros_(head.weight)
fixed = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
fixed.eval()
params = [one for layer in (shared, down, up, head) for one in layer.parameters()]
optimizer = torch.optim.SGD(params, lr=0.1)
numbers = []
for _ in range(12):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    for layer in layers:
        x = torch.tanh(layer(x))
    out = head(x + up(down(x)))
    optimizer.zero_grad()
    loss = F.cross_entropy(out, y) + 0.1 * (fixed(out) - 0.5).square().mean()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
