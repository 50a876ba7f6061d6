"""Sequence to sequence with tied embeddings, padding masks and teacher forcing."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS, FIRST, VOCAB = 0, 1, 2, 3, 14


def pairs(n, seed):
    rnd = random.Random(seed)
    out = []
    for _ in range(n):
        src = [rnd.randrange(FIRST, VOCAB) for _ in range(rnd.randint(3, 6))]
        tgt = [FIRST + (t - FIRST + 1) % (VOCAB - FIRST) for t in src]
        out.append((torch.tensor(src), torch.tensor([BOS, *tgt, EOS])))
    return out


def collate(batch):
    src, tgt = zip(*batch)
    return pad_sequence(src, batch_first=True), pad_sequence(tgt, batch_first=True)


class Seq2Seq(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, VOCAB)
        self.out.weight = self.emb.weight  # one matrix for both

    def forward(self, src, tgt_in):
        mem, h = self.encoder(self.emb(src))
        mem = self.bridge(mem)
        h0 = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1))).unsqueeze(0)
        q, _ = self.decoder(self.emb(tgt_in), h0)
        score = q @ mem.transpose(1, 2) / mem.size(-1) ** 0.5
        score = score.masked_fill((src == PAD)[:, None, :], -1e9)
        ctx = score.softmax(-1) @ mem
        return self.out(torch.tanh(self.mix(torch.cat([q, ctx], -1))))


def main():
    torch.manual_seed(0)
    loader = DataLoader(pairs(240, 0), batch_size=40, shuffle=True, collate_fn=collate)
    model = Seq2Seq()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        total, tokens = 0.0, 0
        for src, tgt in loader:
            logits = model(src, tgt[:, :-1])
            gold = tgt[:, 1:]
            losses = F.cross_entropy(logits.transpose(1, 2), gold, reduction="none")
            mask = (gold != PAD).float()
            loss = (losses * mask).sum() / mask.sum()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += (losses.detach() * mask).sum().item()
            tokens += int(mask.sum())
        if epoch % 3 == 0:
            print(f"epoch {epoch} loss per token {total / tokens:.4f}")
    assert model.out.weight is model.emb.weight


if __name__ == "__main__":
    main()
