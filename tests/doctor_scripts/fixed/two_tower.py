import torch
from torch import nn
from torch.nn import functional as F


class Tower(nn.Module):
    def __init__(self, n_ids, dim):
        super().__init__()
        self.emb = nn.Embedding(n_ids, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, ids):
        return F.normalize(self.mlp(self.emb(ids)), dim=-1)


class Recommender:
    def __init__(self, n_users, n_items, dim=16, temperature=0.2):
        self.user_tower = Tower(n_users, dim)
        self.item_tower = Tower(n_items, dim)
        self.temperature = temperature
        self.optimizer = self.configure_optimizer()

    def configure_optimizer(self):
        params = list(self.user_tower.parameters())
        params += list(self.item_tower.parameters())
        return torch.optim.Adam(params, lr=5e-3)

    def loss(self, users, items):
        u = self.user_tower(users)
        v = self.item_tower(items)
        logits = u @ v.t() / self.temperature
        return F.cross_entropy(logits, torch.arange(len(users)))

    def fit(self, interactions, epochs, batch_size=16):
        for epoch in range(epochs):
            perm = torch.randperm(len(interactions))
            losses = []
            for start in range(0, len(perm), batch_size):
                users, items = interactions[perm[start : start + batch_size]].unbind(1)
                loss = self.loss(users, items)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: {sum(losses) / len(losses):.3f}")


def main():
    torch.manual_seed(11)
    users = torch.randint(0, 40, (128,))
    items = (users * 3 + torch.randint(0, 3, (128,))) % 60
    Recommender(40, 60).fit(torch.stack([users, items], dim=1), epochs=6)


if __name__ == "__main__":
    main()
