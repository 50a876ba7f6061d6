"""Hooks that change a gradient in place, dropout that is to work in eval mode, draws with their log-probability."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Uncertain(nn.Module):
    """Drops values in eval mode, too, and says so."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(F.dropout(x, 0.5, training=True))


seen, numbers = [], []


def halve(grad):
    grad *= 0.5


def note(grad):
    seen.append(grad.sum().item())


model = Uncertain()
model.layer.weight.register_hook(halve)
model.layer.bias.register_hook(note)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    mean, spread = model(torch.randn(8, 4)).chunk(2, dim=1)
    deviation = F.softplus(spread) + 0.1
    with torch.no_grad():
        action = mean + deviation * torch.randn(8, 1)
    score = -((action - mean) / deviation).square() / 2 - deviation.log()
    loss = -(score * (1 - action.square())).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    numbers.append(loss.item())
model.eval()
with torch.no_grad():
    runs = torch.stack([model(torch.ones(2, 4)) for _ in range(4)])
numbers += [runs.std().item(), *seen]
