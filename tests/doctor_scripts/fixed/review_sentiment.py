"""Bag-of-embeddings sentiment model, embeddings fine-tuned from 'pretrained' vectors."""

import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

POSITIVE = ["good", "great", "lovely", "superb", "fun"]
NEGATIVE = ["bad", "awful", "boring", "poor", "dull"]
NEUTRAL = ["the", "film", "was", "a", "story", "plot", "actor", "scene", "it", "and"]
WORDS = POSITIVE + NEGATIVE + NEUTRAL
INDEX = {w: i for i, w in enumerate(WORDS)}


def pretrained_vectors(dim):
    """Vectors that know topics but not polarity: all opinion words look the same."""
    g = torch.Generator().manual_seed(0)
    vec = 0.5 * torch.randn(len(WORDS), dim, generator=g)
    vec[:10] = vec[0] + 0.01 * torch.randn(10, dim, generator=g)
    return vec


class Reviews(Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = rnd.randint(0, 1)
            words = rnd.choices(NEUTRAL, k=6) + rnd.choices(POSITIVE if label else NEGATIVE, k=2)
            rnd.shuffle(words)
            self.rows.append((torch.tensor([INDEX[w] for w in words]), torch.tensor(float(label))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Classifier(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors, freeze=False)
        dim = vectors.size(1)
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, ids):
        return self.head(self.embedding(ids).mean(dim=1)).squeeze(-1)


def run_epoch(model, loader, loss_fn, optimizer=None):
    model.train(optimizer is not None)
    total, hits, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for ids, label in loader:
            logit = model(ids)
            loss = loss_fn(logit, label)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(label)
            hits += ((logit > 0).float() == label).sum().item()
            n += len(label)
    return total / n, hits / n


def main():
    torch.manual_seed(0)
    train = DataLoader(Reviews(256, 0), batch_size=32, shuffle=True)
    test = DataLoader(Reviews(128, 1), batch_size=64)
    model = Classifier(pretrained_vectors(16))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(8):
        tr = run_epoch(model, train, loss_fn, optimizer)
        te = run_epoch(model, test, loss_fn)
        print("epoch %d  train %.3f/%.2f  test %.3f/%.2f" % (epoch, *tr, *te))


if __name__ == "__main__":
    main()
