import torch
import torch.nn as nn
import torch.nn.functional as F


class SparseMoE(nn.Module):
    """Top-1 routing. An expert that no token of a batch chose is not run and gets no gradient."""

    def __init__(self, dim, n_experts):
        super().__init__()
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim)) for _ in range(n_experts)
        )

    def forward(self, x):
        probs = self.router(x).softmax(dim=-1)
        weight, choice = probs.max(dim=-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero(as_tuple=True)[0]
            if rows.numel() == 0:
                continue
            out = out.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        load = F.one_hot(choice, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (load * probs.mean(0)).sum()
        return x + out, balance


class Model(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.moe = SparseMoE(dim, n_experts=8)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        h, balance = self.moe(x)
        return self.head(h), balance


def main():
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(40):
        x = torch.randn(6, 6)
        y = (x[:, 0] * x[:, 1] > 0).long()
        logits, balance = model(x)
        loss = F.cross_entropy(logits, y) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
