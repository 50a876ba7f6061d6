"""Matrix factorisation for a small rating matrix."""

import logging
import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("mf")

N_USERS, N_ITEMS, DIM = 50, 40, 8


def synthetic_ratings(n=1500):
    g = torch.Generator().manual_seed(7)
    u_f = torch.randn(N_USERS, 3, generator=g)
    i_f = torch.randn(N_ITEMS, 3, generator=g)
    users = torch.randint(0, N_USERS, (n,), generator=g)
    items = torch.randint(0, N_ITEMS, (n,), generator=g)
    ratings = 3 + (u_f[users] * i_f[items]).sum(1) + 0.1 * torch.randn(n, generator=g)
    return TensorDataset(users, items, ratings)


class Factorisation(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim, sparse=True)  # here
        self.item = nn.Embedding(n_items, dim, sparse=True)  # here
        self.user_bias = nn.Embedding(n_users, 1, sparse=True)
        self.item_bias = nn.Embedding(n_items, 1, sparse=True)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for emb in (self.user, self.item):
            nn.init.normal_(emb.weight, std=0.1)
        for emb in (self.user_bias, self.item_bias):
            nn.init.zeros_(emb.weight)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(-1)
        return dot + self.user_bias(u).squeeze(-1) + self.item_bias(i).squeeze(-1) + self.mean


def rmse(model, loader):
    model.eval()
    se, n = 0.0, 0
    with torch.no_grad():
        for u, i, r in loader:
            se += (model(u, i) - r).pow(2).sum().item()
            n += len(r)
    return (se / n) ** 0.5


def main():
    torch.manual_seed(0)
    data = synthetic_ratings()
    train_set, test_set = random_split(data, [1200, 300])
    train = DataLoader(train_set, batch_size=128, shuffle=True)
    test = DataLoader(test_set, batch_size=300)
    model = Factorisation(N_USERS, N_ITEMS, DIM)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)  # here
    for epoch in range(4):
        model.train()
        for u, i, r in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(u, i), r)
            loss.backward()
            optimizer.step()
        log.info("epoch %d loss %.3f test rmse %.3f", epoch, loss.item(), rmse(model, test))


if __name__ == "__main__":
    main()
