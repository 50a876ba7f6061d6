import torch
import torch.nn as nn


class Factorization(nn.Module):
    def __init__(self, users, items, rank=4):
        super().__init__()
        self.users = nn.Embedding(users, rank, sparse=True)
        self.items = nn.Embedding(items, rank, sparse=True)
        self.bias = nn.Parameter(torch.zeros(()))
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1) + self.bias


def ratings(n=240):
    u, i = torch.randint(0, 30, (n,)), torch.randint(0, 20, (n,))
    p, q = torch.randn(30, 2), torch.randn(20, 2)
    return u, i, (p[u] * q[i]).sum(1) + 1.0


def main():
    torch.manual_seed(0)
    model = Factorization(30, 20)
    # each side has its own optimizer; they take turns, the other side rests
    sides = [
        torch.optim.SparseAdam(model.users.parameters(), lr=0.05),
        torch.optim.SparseAdam(model.items.parameters(), lr=0.05),
    ]
    bias = torch.optim.SGD([model.bias], lr=0.1)
    u, i, r = ratings()
    for epoch in range(16):
        active = sides[epoch % 2]
        for batch in torch.randperm(len(u)).split(40):
            loss = (model(u[batch], i[batch]) - r[batch]).pow(2).mean()
            model.zero_grad()
            loss.backward()
            active.step()
            bias.step()
        if epoch % 5 == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()
