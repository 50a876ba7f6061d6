"""How much each input matters for the answer of a model in eval mode: gradients of inputs, not of weights."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).eval()
x = torch.randn(4, 5, requires_grad=True)
scores = model(x)
scores[torch.arange(4), scores.argmax(1)].sum().backward()
numbers = x.grad.abs().flatten().tolist()
