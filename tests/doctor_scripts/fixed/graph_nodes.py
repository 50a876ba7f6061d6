import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def two_communities(n=60, p_in=0.25, p_out=0.03, seed=0):
    g = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) >= n // 2).long()
    same = labels[:, None] == labels[None, :]
    prob = torch.where(same, torch.tensor(p_in), torch.tensor(p_out))
    upper = torch.triu(torch.rand(n, n, generator=g) < prob, diagonal=1).float()
    return upper + upper.T, labels


def normalise(adj):
    a = adj + torch.eye(adj.size(0))
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


class GraphConv(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.lin = nn.Linear(din, dout)

    def forward(self, a_hat, h):
        return a_hat @ self.lin(h)


class GCN(nn.Module):
    def __init__(self, sizes, dropout=0.2):
        super().__init__()
        self.layers = nn.ModuleList(GraphConv(i, o) for i, o in zip(sizes[:-1], sizes[1:]))
        self.dropout = dropout

    def forward(self, a_hat, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(a_hat, x))
            x = F.dropout(x, self.dropout, training=self.training)
        return self.layers[-1](a_hat, x)


def run(args):
    torch.manual_seed(args.seed)
    adj, labels = two_communities()
    a_hat = normalise(adj)
    x = torch.randn(adj.size(0), 8) + labels[:, None] * 0.4
    train_mask = torch.zeros(len(labels), dtype=torch.bool)
    train_mask[torch.randperm(len(labels))[:12]] = True

    model = GCN([8, args.hidden, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for epoch in range(args.epochs):
        model.train()
        out = model(a_hat, x)
        loss = F.cross_entropy(out[train_mask], labels[train_mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 20 == 0:
            model.eval()
            with torch.no_grad():
                pred = model(a_hat, x).argmax(-1)
            acc = (pred[~train_mask] == labels[~train_mask]).float().mean()
            print(f"{epoch + 1:3d} loss={loss.item():.4f} test acc={acc:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=3)
    run(parser.parse_args())
