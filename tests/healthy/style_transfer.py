"""A picture is what is learned, by a frozen network; it is kept in range under no_grad."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)).requires_grad_(False)
picture, wanted = torch.rand(1, 3, 8, 8).requires_grad_(), torch.rand(1, 4, 4, 4)
optimizer = torch.optim.Adam([picture], lr=0.1)
numbers = []
for _ in range(5):
    with torch.no_grad():
        picture.clamp_(0, 1)
    optimizer.zero_grad()
    loss = (network(picture) - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
