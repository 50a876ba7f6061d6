"""The library's own transformer encoder layer with a padding mask, trained to tell the mean of its input."""

import torch
from torch import nn

torch.manual_seed(0)
x, padding = torch.randn(3, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
wanted = x.masked_fill(padding.unsqueeze(-1), 0.0).sum(1).mean(-1, keepdim=True)
layer, head = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.AdamW([*layer.parameters(), *head.parameters()], lr=0.01)
numbers = []
for _ in range(5):
    guess = head(layer(x, src_key_padding_mask=padding)[:, 0])
    loss = nn.functional.mse_loss(guess, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
