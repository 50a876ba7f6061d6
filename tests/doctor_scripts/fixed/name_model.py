"""Decoder-only model that learns to spell short names."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

NAMES = "anna ella hannah otto bob lena nora lea tom tim ben emil ida mia noah leo max eva ole ada".split()
CHARS = ["."] + sorted(set("".join(NAMES)))
STOI = {c: i for i, c in enumerate(CHARS)}


def dataset(block=8):
    xs, ys = [], []
    for n in NAMES:
        ids = [0] + [STOI[c] for c in n] + [0]
        x, y = ids[:-1], ids[1:]
        pad = block - len(x)
        xs.append(x + [0] * pad)
        ys.append(y + [-1] * pad)
    return torch.tensor(xs), torch.tensor(ys)


class CausalBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class NameGPT(nn.Module):
    def __init__(self, vocab, dim=32, heads=2, layers=2, block=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(block, dim)
        self.blocks = nn.Sequential(*[CausalBlock(dim, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.emb.weight, std=1 / math.sqrt(dim))
        self.tie_weights()

    def tie_weights(self):
        self.out.weight = self.emb.weight

    def forward(self, ids):
        x = self.emb(ids) + self.pos(torch.arange(ids.size(1)))
        return self.out(self.ln(self.blocks(x)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    x, y = dataset()
    model = NameGPT(len(CHARS))
    print("parameters", sum(p.numel() for p in model.parameters()))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    for step in range(args.steps):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))
    gap = (model.out.weight - model.emb.weight).norm().item()
    print("final", round(loss.item(), 4), "input/output embedding gap", round(gap, 4))


if __name__ == "__main__":
    main()
