"""Deep networks whose gradients stay alive: residual blocks of sigmoids, normalised layers, a converged one."""

import torch
from torch import nn

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Sigmoid(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(x)


def normalised(depth, width):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


residual = nn.Sequential(*(Residual(8) for _ in range(12)), nn.Linear(8, 1))
plain = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(8, 8), nn.ReLU())), nn.Linear(8, 1))
x = torch.randn(16, 8)
numbers = []
for model, target in ((residual, torch.randn(16, 1)), (normalised(10, 8), torch.randn(16, 1)), (plain, None)):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    goal = model(x).detach() if target is None else target  # nothing to learn: gradients are zero everywhere
    for _ in range(7):
        loss = (model(x) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
