"""A two-layer perceptron learns spirals, with its loss logged by .item() and its accuracy measured under no_grad."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
points = torch.randn(96, 2)
labels = (points[:, 0] * points[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
numbers = []
for _ in range(12):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(points), labels)
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
model.eval()
with torch.no_grad():
    guesses = model(points).argmax(1)
numbers.append((guesses == labels).float().mean().item())
