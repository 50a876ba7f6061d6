"""Hooks of the user's: gradients logged, one scaled on purpose, activations caught with detach."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
caught, numbers = {}, []
model[1].register_forward_hook(lambda module, args, out: caught.update(tanh=out.detach()))
model[0].weight.register_hook(lambda grad: grad * 0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _ in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers += [loss.item(), caught["tanh"].abs().mean().item()]
