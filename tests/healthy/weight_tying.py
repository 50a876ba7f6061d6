"""Embedding and output layer share one Parameter, as they should."""

import torch
from torch import nn
from torch.nn import functional as F


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.work, self.scores = nn.Embedding(12, 6), nn.Linear(6, 6), nn.Linear(6, 12, bias=False)
        self.scores.weight = self.embed.weight

    def forward(self, codes):
        return self.scores(torch.tanh(self.work(self.embed(codes))))


torch.manual_seed(0)
codes = torch.randint(0, 12, (20,))
model = Language()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
numbers = []
for _ in range(6):
    loss = F.cross_entropy(model(codes[:-1]), codes[1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
