"""Masks of keys before the softmax, of queries and heads after it; a pooling normalised again; CLIP both ways."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 1)
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, words):
        shown = (words != 0).float()
        x = self.embed(words)
        query, key, value = (
            layer(x).view(*words.shape, 2, 4).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / 2 + (1 - shown[:, None, None, :]) * -1e9
        weights = F.softmax(scores, dim=-1) * shown[:, None, :, None] * torch.tensor([1.0, 0.5])[:, None, None]
        x = x + (weights @ value).transpose(1, 2).flatten(2)
        pool = torch.softmax(self.score(x).squeeze(-1), dim=1) * shown
        pool = pool / pool.sum(1, keepdim=True)
        return F.normalize((pool.unsqueeze(-1) * x).sum(1), dim=1)


images, texts = nn.Linear(6, 8), Encoder()
optimizer = torch.optim.Adam([*images.parameters(), *texts.parameters()], lr=0.01)
pictures, words, numbers = torch.randn(5, 6), torch.randint(1, 20, (5, 7)), []
words[1, 4:], words[3, 2:] = 0, 0
for _ in range(5):
    similar, rows = 5 * F.normalize(images(pictures), dim=1) @ texts(words).T, torch.arange(5)
    loss = (
        F.nll_loss(F.log_softmax(similar, dim=1), rows) - F.log_softmax(similar, dim=0).gather(1, rows[:, None]).mean()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
