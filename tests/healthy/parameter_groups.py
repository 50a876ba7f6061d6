"""Groups with options of their own, and a scale that is a bare Parameter."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.layers = nn.ModuleDict({"in": nn.Linear(2, 4), "out": nn.Linear(4, 1)})

    def forward(self, x):
        return self.scale * self.layers["out"](torch.relu(self.layers["in"](x)))


torch.manual_seed(0)
model = Scaled()
weights = [one for name, one in model.named_parameters() if one.dim() > 1]
others = [one for name, one in model.named_parameters() if one.dim() == 1]
optimizer = torch.optim.AdamW(
    [{"params": weights, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=0.02
)
x, y, numbers = torch.randn(10, 2), torch.randn(10, 1), []
for _ in range(6):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
