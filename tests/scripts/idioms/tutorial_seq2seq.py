"""A sequence is reversed by a GRU encoder and a decoder with additive attention, taught by the right words."""

import random

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
random.seed(0)
SOS, LENGTH, WORDS, HIDDEN = 0, 4, 7, 16


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(WORDS, HIDDEN), nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.dropout = nn.Dropout(0.1)

    def forward(self, words):
        return self.gru(self.dropout(self.embedding(words)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.score = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)

    def forward(self, query, keys):
        scores = self.score(torch.tanh(self.query(query) + self.key(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.attention = nn.Embedding(WORDS, HIDDEN), Attention()
        self.gru, self.out = nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True), nn.Linear(HIDDEN, WORDS)

    def forward(self, states, hidden, target=None):
        word = torch.full((states.size(0), 1), SOS, dtype=torch.long)
        outputs, attentions = [], []
        for place in range(LENGTH):
            context, weights = self.attention(hidden.permute(1, 0, 2), states)
            output, hidden = self.gru(torch.cat((self.embedding(word), context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            word = output.topk(1)[1].squeeze(-1).detach() if target is None else target[:, place].unsqueeze(1)
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


pairs = [[random.randrange(1, WORDS) for _ in range(LENGTH)] for _ in range(32)]
sources = torch.tensor(pairs)
targets = sources.flip(1)
encoder, decoder, criterion = Encoder(), Decoder(), nn.NLLLoss()
optimizers = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (encoder, decoder)]
for epoch in range(5):
    states, hidden = encoder(sources)
    output, _ = decoder(states, hidden, targets)
    loss = criterion(output.view(-1, output.size(-1)), targets.reshape(-1))
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    print(f"{epoch}: {loss.item():.3f}")
with torch.no_grad():
    encoder.eval()
    output, attention = decoder(*encoder(sources[:2]))
    print(output.shape, attention.sum(-1).round(decimals=4).tolist())
