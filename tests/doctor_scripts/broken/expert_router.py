import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, x):
        return self.net(x)


class RoutedLayer(nn.Module):
    def __init__(self, dim, n_experts):
        super().__init__()
        self.router = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(Expert(dim) for _ in range(n_experts))

    def forward(self, x):
        probs = F.softmax(self.router(x), dim=-1)
        choice = probs.argmax(dim=-1)  # here
        gate = F.one_hot(choice, len(self.experts)).float()  # here
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return x + (gate.unsqueeze(-1) * outputs).sum(dim=1)


class Model(nn.Module):
    def __init__(self, dim=8, n_experts=3):
        super().__init__()
        self.layer = RoutedLayer(dim, n_experts)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        return self.head(self.norm(self.layer(x)))


def main():
    torch.manual_seed(2)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(128, 8)
    y = ((x[:, 0] * x[:, 1]) > 0).long()
    for step in range(40):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
