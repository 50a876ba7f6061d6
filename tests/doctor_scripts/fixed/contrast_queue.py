"""Contrastive pretraining on vectors, with a queue of earlier embeddings as negatives."""

from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class Augment:
    def __init__(self, noise=0.3, drop=0.2):
        self.noise, self.drop = noise, drop

    def __call__(self, x):
        keep = (torch.rand_like(x) > self.drop).float()
        return (x + self.noise * torch.randn_like(x)) * keep


class Embedder(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class NegativeQueue:
    def __init__(self, batches):
        self.items = deque(maxlen=batches)

    @torch.no_grad()
    def fill(self, model, x, batch):
        for part in x.split(batch)[: self.items.maxlen]:
            self.items.append(model(part))

    def push(self, z):
        self.items.append(z.detach())

    def tensor(self):
        return torch.cat(list(self.items))


def info_nce(anchor, positive, negatives, temperature=0.2):
    pos = (anchor * positive).sum(1, keepdim=True)
    logits = [pos, anchor @ negatives.T]
    in_batch = anchor @ positive.T
    eye = torch.eye(len(anchor), dtype=torch.bool)
    logits.append(in_batch.masked_fill(eye, -1e4))
    logits = torch.cat(logits, dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(anchor), dtype=torch.long))


def clusters(n, k, dim):
    centers = 2 * torch.randn(k, dim)
    label = torch.randint(0, k, (n,))
    return centers[label] + 0.5 * torch.randn(n, dim), label


def pretrain(model, x, epochs, batch):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    queue, augment = NegativeQueue(4), Augment()
    queue.fill(model, x, batch)
    for epoch in range(epochs):
        losses = []
        for idx in torch.randperm(len(x)).split(batch):
            a, b = model(augment(x[idx])), model(augment(x[idx]))
            loss = info_nce(a, b, queue.tensor())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            queue.push(b)
            losses.append(loss.item())
        print(f"epoch {epoch} nce {sum(losses) / len(losses):.4f}")


@torch.no_grad()
def neighbour_accuracy(model, x, y):
    model.eval()
    z = model(x)
    sim = z @ z.T - 2 * torch.eye(len(z))
    return (y[sim.argmax(1)] == y).float().mean().item()


def main():
    torch.manual_seed(40)
    x, y = clusters(512, 32, 20)
    model = Embedder(20, 8)
    pretrain(model, x, epochs=8, batch=64)
    print("1-nn accuracy", neighbour_accuracy(model, x, y))


if __name__ == "__main__":
    main()
