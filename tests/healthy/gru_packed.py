"""A GRU reads sentences of different lengths and classifies them by its last state."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import rnn

torch.manual_seed(0)
words, lengths, labels = torch.randint(1, 20, (6, 7)), [7, 6, 5, 4, 3, 2], torch.tensor([0, 1, 0, 1, 0, 1])
embed, gru, head = nn.Embedding(20, 8, padding_idx=0), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
params = [*embed.parameters(), *gru.parameters(), *head.parameters()]
optimizer = torch.optim.RMSprop(params, lr=0.01)
numbers = []
for _ in range(5):
    packed = rnn.pack_padded_sequence(embed(words), lengths, batch_first=True)
    _, last = gru(packed)
    loss = F.cross_entropy(head(last[0]), labels)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
