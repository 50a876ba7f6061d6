"""Bi-LSTM tagger: marks every token that repeats an earlier one."""

import random

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCAB, PAD_TAG = 20, -100


def make_corpus(n, seed):
    rnd = random.Random(seed)
    corpus = []
    for _ in range(n):
        toks = [rnd.randrange(1, VOCAB) for _ in range(rnd.randint(4, 9))]
        tags = [int(t % 3 == 0) for t in toks]
        corpus.append((torch.tensor(toks), torch.tensor(tags)))
    return corpus


def collate(batch):
    toks, tags = zip(*batch)
    return (
        pad_sequence(toks, batch_first=True, padding_value=0),
        pad_sequence(tags, batch_first=True, padding_value=PAD_TAG),
    )


class Tagger(nn.Module):
    def __init__(self, vocab, emb=12, hidden=16, tags=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, toks):
        h, _ = self.lstm(self.emb(toks))
        return self.out(h)


def evaluate(model, loader):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for toks, tags in loader:
            pred = model(toks).argmax(-1)
            mask = tags != PAD_TAG
            good += (pred[mask] == tags[mask]).sum().item()
            total += mask.sum().item()
    return good / total


def train(model, loader, val_loader, epochs, lr, max_norm):
    params = model.parameters()  # here
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
    for epoch in range(epochs):
        model.train()
        for toks, tags in loader:
            optimizer.zero_grad()
            logits = model(toks)
            loss = criterion(logits.flatten(0, 1), tags.flatten())
            loss.backward()
            clip_grad_norm_(params, max_norm)  # here
            optimizer.step()
        print(epoch, f"{loss.item():.4f}", f"val {evaluate(model, val_loader):.3f}")


def main():
    torch.manual_seed(0)
    loader = DataLoader(make_corpus(160, 0), batch_size=16, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(make_corpus(40, 1), batch_size=20, collate_fn=collate)
    train(Tagger(VOCAB), loader, val_loader, epochs=5, lr=0.5, max_norm=0.05)


if __name__ == "__main__":
    main()
