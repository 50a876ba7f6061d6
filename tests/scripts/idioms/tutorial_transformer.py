"""A language model of nn.TransformerEncoder with positions by sines and a causal mask."""

import math

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 32):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken: int, d_model: int, nhead: int, d_hid: int, nlayers: int, dropout: float):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        self.encoder = nn.Embedding(ntoken, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.d_model, self.decoder = d_model, nn.Linear(d_model, ntoken)
        self.decoder.bias.data.zero_()
        self.decoder.weight.data.uniform_(-0.1, 0.1)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(len(words))
        states = self.pos_encoder(self.encoder(words) * math.sqrt(self.d_model))
        return self.decoder(self.transformer_encoder(states, mask))


data = (torch.arange(120) * 3 % 11).view(4, -1).t().contiguous()
model = TransformerModel(11, 16, 2, 32, 2, 0.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)
model.train()
for start in range(0, 24, 6):
    words, target = data[start : start + 6], data[start + 1 : start + 7].reshape(-1)
    loss = criterion(model(words).view(-1, 11), target)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    print(f"lr {scheduler.get_last_lr()[0]:.3f} loss {loss.item():.3f} ppl {math.exp(loss.item()):.2f} norm {norm:.2f}")
