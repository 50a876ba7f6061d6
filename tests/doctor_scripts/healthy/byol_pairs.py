import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, n_out))


class BYOL(nn.Module):
    def __init__(self, n_in=10, dim=8, momentum=0.95):
        super().__init__()
        self.online = mlp(n_in, dim)
        self.predictor = mlp(dim, dim)
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.momentum = momentum

    def trainable(self):
        yield from self.online.parameters()
        yield from self.predictor.parameters()

    @torch.no_grad()
    def update_target(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o, 1 - self.momentum)

    def forward(self, a, b):
        def one_way(x, y):
            p = F.normalize(self.predictor(self.online(x)), dim=1)
            with torch.no_grad():
                z = F.normalize(self.target(y), dim=1)
            return 2 - 2 * (p * z).sum(dim=1)

        return (one_way(a, b) + one_way(b, a)).mean()


def main():
    torch.manual_seed(0)
    data = torch.randn(96, 3) @ torch.randn(3, 10)
    byol = BYOL()
    optimizer = torch.optim.SGD(byol.trainable(), lr=0.05, momentum=0.9)
    for step in range(24):
        x = data[torch.randperm(96)[:32]]
        loss = byol(x + 0.2 * torch.randn_like(x), x + 0.2 * torch.randn_like(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        byol.update_target()
    # a linear probe on the frozen features
    byol.eval()
    with torch.no_grad():
        features = byol.online(data)
    probe = nn.Linear(8, 1)
    optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=10)
    y = data[:, :1]

    def closure():
        optimizer.zero_grad()
        error = F.mse_loss(probe(features), y)
        error.backward()
        return error

    before = optimizer.step(closure)
    print("contrast", loss.item(), "probe", before.item(), "->", closure().item())


if __name__ == "__main__":
    main()
