"""Character level language model on a small string, read as one long stream."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "the quick brown fox jumps over the lazy dog and then the dog sleeps. " * 30


def build_vocab(text):
    chars = sorted(set(text))
    return {c: i for i, c in enumerate(chars)}


class CharLM(nn.Module):
    def __init__(self, vocab, emb=16, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb)
        self.rnn = nn.LSTM(emb, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)
        self.hidden = hidden

    def init_state(self, bs):
        z = torch.zeros(1, bs, self.hidden)
        return z, z.clone()

    def forward(self, x, state):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


def batchify(ids, bs):
    n = len(ids) // bs
    return torch.tensor(ids[: n * bs]).view(bs, n)


def train_epoch(model, data, opt, window):
    model.train()
    state = model.init_state(data.size(0))
    total, count = 0.0, 0
    for start in range(0, data.size(1) - 1 - window, window):
        x = data[:, start : start + window]
        y = data[:, start + 1 : start + 1 + window]
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        state = tuple(s.detach() for s in state)
        total += loss.item()
        count += 1
    return total / count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--window", type=int, default=20)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args()

    torch.manual_seed(1)
    vocab = build_vocab(TEXT)
    data = batchify([vocab[c] for c in TEXT], args.batch_size)
    model = CharLM(len(vocab))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        loss = train_epoch(model, data, opt, args.window)
        print(f"epoch {epoch}: loss {loss:.3f} ppl {math.exp(loss):.2f}")


if __name__ == "__main__":
    main()
