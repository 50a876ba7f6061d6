"""Penalised logistic regression fitted with L-BFGS."""

import torch
from torch import nn


class LogisticModel(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(d))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x @ self.beta + self.bias


def simulate(n=300, d=8):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    beta = torch.tensor([2.0, -1.0, 0.5] + [0.0] * (d - 3), dtype=torch.float64)
    y = torch.bernoulli(torch.sigmoid(x @ beta - 0.3), generator=g)
    return x, y, beta


def fit(model, x, y, l2=1e-2, rounds=6):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=10, line_search_fn="strong_wolfe")
    loss_fn = nn.BCEWithLogitsLoss()
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = loss_fn(model(x), y) + l2 * model.beta.pow(2).sum()
        loss.backward()
        return loss

    for r in range(rounds):
        loss = optimizer.step(closure)
        print(f"round {r} loss {loss.item():.6f} evaluations {calls}")
        if max(p.grad.abs().max().item() for p in model.parameters()) < 1e-8:
            break
    return model


def main():
    x, y, true = simulate()
    model = fit(LogisticModel(x.size(1)).double(), x, y)
    with torch.no_grad():
        print("beta", [round(v, 2) for v in model.beta.tolist()])
        print("accuracy", ((model(x) > 0).double() == y).double().mean().item())


if __name__ == "__main__":
    main()
