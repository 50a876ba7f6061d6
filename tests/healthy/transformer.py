"""A causal transformer learns to repeat a text, as in examples/char_language_model.py; masks hold -inf."""

import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LENGTH = 16, 2, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.gather = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.work = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))
        self.register_buffer("future", torch.triu(torch.ones(LENGTH, LENGTH), 1).bool())

    def forward(self, x):
        query, key, value = self.look(self.before(x)).reshape(len(x), LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(key.shape[-1])
        chances = F.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1)
        x = x + self.gather((chances @ value).transpose(1, 2).flatten(2))
        return x + self.work(self.between(x))


torch.manual_seed(0)
codes = torch.randint(0, 10, (4, LENGTH + 1))
embed, places = nn.Embedding(10, WIDTH), nn.Embedding(LENGTH, WIDTH)
model = nn.Sequential(embed, Block(), Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))
optimizer = torch.optim.AdamW([*model.parameters(), *places.parameters()], lr=0.01)
numbers = []
for _ in range(5):
    x = embed(codes[:, :-1]) + places(torch.arange(LENGTH))
    loss = F.cross_entropy(model[1:](x).flatten(0, 1), codes[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    numbers.append(loss.item())
