"""Word vectors where known rows stay fixed and rare rows get smaller gradients (by hooks)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCAB, KNOWN, DIM = 60, 20, 12


class SkipGram(nn.Module):
    def __init__(self, counts):
        super().__init__()
        self.inp = nn.Embedding(VOCAB, DIM)
        self.ctx = nn.Embedding(VOCAB, DIM)
        nn.init.zeros_(self.ctx.weight)
        row_scale = torch.ones(VOCAB, 1)
        row_scale[:KNOWN] = 0.0
        self.register_buffer("row_scale", row_scale)
        self.register_buffer("rarity", (counts / counts.max()).sqrt()[:, None])
        self.inp.weight.register_hook(lambda g: g * self.row_scale)
        self.ctx.weight.register_hook(lambda g: g * self.rarity)

    def forward(self, word, pos, neg):
        w = self.inp(word)
        good = (w * self.ctx(pos)).sum(-1)
        bad = torch.einsum("bd,bkd->bk", w, self.ctx(neg))
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()


def corpus(n=1500):
    g = torch.Generator().manual_seed(0)
    topic = torch.randint(0, 3, (n,), generator=g)
    draw = lambda: topic + 3 * (torch.rand(n, generator=g) ** 2 * (VOCAB // 3)).long()
    return draw(), draw()


def main():
    torch.manual_seed(0)
    word, ctx = corpus()
    counts = torch.bincount(ctx, minlength=VOCAB).float() + 1
    model = SkipGram(counts)
    fixed = model.inp.weight[:KNOWN].detach().clone()
    # plain SGD: a zero gradient means no change, so the fixed rows really stay
    opt = torch.optim.SGD(model.parameters(), lr=1.0)
    loader = DataLoader(TensorDataset(word, ctx), batch_size=100, shuffle=True)
    for epoch in range(12):
        total = 0.0
        for w, c in loader:
            neg = torch.multinomial(counts, len(w) * 4, replacement=True).view(-1, 4)
            loss = model(w, c, neg)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 3 == 0:
            print("epoch", epoch, "loss", round(total / len(loader), 4))
    assert torch.equal(fixed, model.inp.weight[:KNOWN])


if __name__ == "__main__":
    main()
