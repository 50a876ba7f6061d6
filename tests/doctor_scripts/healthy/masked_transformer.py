import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def attend(self, x, hidden):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(hidden, float("-inf"))
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x, hidden):
        x = x + self.attend(self.norm1(x), hidden)
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocab=12, dim=16, heads=4, depth=2, max_len=8):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.positions = nn.Parameter(torch.zeros(max_len, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.head.weight, std=0.02)
        self.register_buffer("causal", torch.ones(max_len, max_len, dtype=torch.bool).triu(1))

    def forward(self, ids):
        t = ids.size(1)
        hidden = self.causal[:t, :t] | (ids == PAD)[:, None, None, :]
        x = self.tokens(ids) + self.positions[:t]
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(self.norm(x))


def batch(n=16, length=8):
    start = torch.randint(1, 12, (n, 1))
    ids = (start + torch.arange(length) * 2 - 1) % 11 + 1
    lengths = torch.randint(3, length + 1, (n, 1))
    return ids.masked_fill(torch.arange(length) >= lengths, PAD)


def main():
    torch.manual_seed(0)
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(30):
        ids = batch()
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 3))


if __name__ == "__main__":
    main()
