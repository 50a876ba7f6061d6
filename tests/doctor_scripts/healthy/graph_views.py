"""BYOL on a random graph: two edge-dropped views, momentum target, no negatives."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def block_graph(n=90, blocks=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    label = torch.arange(n) % blocks
    p = torch.where(label[:, None] == label[None], 0.3, 0.03)
    a = torch.triu((torch.rand(n, n, generator=g) < p).float(), 1)
    return a + a.T, label


def drop_edges(adj, rate):
    keep = torch.triu((torch.rand_like(adj) > rate).float(), 1)
    return adj * (keep + keep.T)


def propagate(adj, h):
    a = adj + torch.eye(len(adj))
    return (a / a.sum(1, keepdim=True)) @ h


class GNN(nn.Module):
    def __init__(self, d, dim):
        super().__init__()
        self.l1, self.l2 = nn.Linear(d, 32), nn.Linear(32, dim)
        self.bn = nn.BatchNorm1d(32)

    def forward(self, adj, x):
        h = F.relu(self.bn(self.l1(propagate(adj, x))))
        return self.l2(propagate(adj, h))


class BYOL:
    def __init__(self, d, dim=16, momentum=0.95):
        self.online = GNN(d, dim)
        self.predictor = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim))
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.m = momentum
        self.opt = torch.optim.AdamW([*self.online.parameters(), *self.predictor.parameters()], lr=5e-3)

    def half(self, view_a, view_b):
        p = self.predictor(self.online(*view_a))
        with torch.no_grad():
            z = self.target(*view_b)
        return 2 - 2 * F.cosine_similarity(p, z, dim=1).mean()

    def step(self, adj, x):
        views = [(drop_edges(adj, 0.3), x * (torch.rand_like(x) > 0.2)) for _ in range(2)]
        loss = self.half(*views) + self.half(*views[::-1])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for t, o in zip(self.target.parameters(), self.online.parameters()):
                t.mul_(self.m).add_(o, alpha=1 - self.m)
        return loss.item()


def main():
    torch.manual_seed(0)
    adj, label = block_graph()
    x = torch.randn(len(adj), 12) + F.one_hot(label, 12) * 1.0
    learner = BYOL(12)
    for it in range(80):
        loss = learner.step(adj, x)
        if it % 20 == 0:
            learner.online.eval()
            with torch.no_grad():
                z = F.normalize(learner.online(adj, x), dim=1)
            learner.online.train()
            sim = z @ z.T
            sim.fill_diagonal_(-2)
            acc = (label[sim.argmax(1)] == label).float().mean().item()
            print(f"it {it} loss {loss:.3f} neighbour agreement {acc:.3f} spread {z.std(0).mean().item():.3f}")


if __name__ == "__main__":
    main()
