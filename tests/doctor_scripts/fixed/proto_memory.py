"""Few-shot classifier with class prototypes; keeps a snapshot of the best model."""

import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class ProtoNet(nn.Module):
    def __init__(self, d_in=12, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.prototypes = None

    def fit_prototypes(self, x, y, n_way):
        z = self.encoder(x)
        protos = torch.stack([z[y == c].mean(0) for c in range(n_way)])
        self.prototypes = protos.detach()
        return protos

    def forward(self, x, prototypes=None):
        if prototypes is None:
            prototypes = self.prototypes
        return -torch.cdist(self.encoder(x), prototypes).pow(2)


class World:
    def __init__(self, classes, d=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.centres = torch.cat([1.2 * torch.randn(classes, d // 2, generator=g), torch.zeros(classes, d - d // 2)], 1)

    def episode(self, n_way=4, shots=3, queries=5):
        classes = random.sample(range(len(self.centres)), n_way)
        noise = torch.ones(12)
        noise[6:] = 2.5

        def draw(k):
            y = torch.arange(n_way).repeat_interleave(k)
            c = self.centres[torch.tensor(classes)][y]
            return c + 0.6 * noise * torch.randn_like(c), y

        return draw(shots), draw(queries)


def evaluate(model, world, episodes=10):
    model.eval()
    accs = []
    with torch.no_grad():
        for _ in range(episodes):
            (xs, ys), (xq, yq) = world.episode()
            protos = torch.stack([model.encoder(xs)[ys == c].mean(0) for c in range(4)])
            accs.append((model(xq, protos).argmax(1) == yq).float().mean().item())
    return sum(accs) / len(accs)


def main():
    random.seed(0)
    torch.manual_seed(0)
    train_world, test_world = World(20, seed=1), World(10, seed=2)
    model = ProtoNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    best_acc, best_model = 0.0, None
    for it in range(1, 121):
        model.train()
        (xs, ys), (xq, yq) = train_world.episode()
        protos = model.fit_prototypes(xs, ys, 4)
        loss = F.cross_entropy(model(xq, protos), yq)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 30 == 0:
            acc = evaluate(model, test_world)
            if acc > best_acc:
                best_acc, best_model = acc, copy.deepcopy(model)
            print(f"episode {it} loss {loss.item():.3f} test acc {acc:.3f}")
    print("best", best_acc, "stored prototypes", tuple(best_model.prototypes.shape))


if __name__ == "__main__":
    main()
