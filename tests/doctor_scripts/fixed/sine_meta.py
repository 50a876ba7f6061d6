"""MAML on sine waves with functional_call."""

import math

import torch
import torch.nn as nn
from torch.func import functional_call


class Task:
    def __init__(self):
        self.amp = 0.5 + 2 * torch.rand(1)
        self.phase = math.pi * torch.rand(1)

    def batch(self, n=10):
        x = 10 * torch.rand(n, 1) - 5
        return x, self.amp * torch.sin(x + self.phase)


class Regressor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x)


class MetaLearner:
    def __init__(self, model, inner_lr=0.02, outer_lr=3e-3, inner_steps=2):
        self.model = model
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.opt = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def loss(self, weights, x, y):
        return nn.functional.mse_loss(functional_call(self.model, weights, (x,)), y)

    def adapt(self, task):
        weights = dict(self.model.named_parameters())
        for _ in range(self.inner_steps):
            x, y = task.batch()
            grads = torch.autograd.grad(self.loss(weights, x, y), list(weights.values()), create_graph=True)
            weights = {k: w - self.inner_lr * g for (k, w), g in zip(weights.items(), grads)}
        return weights

    def outer_step(self, tasks):
        self.opt.zero_grad()
        total = 0.0
        for task in tasks:
            weights = self.adapt(task)
            x, y = task.batch()
            loss = self.loss(weights, x, y) / len(tasks)
            loss.backward()
            total += loss.item()
        self.opt.step()
        return total


def main():
    torch.manual_seed(0)
    learner = MetaLearner(Regressor())
    recent = []
    for it in range(40):
        recent.append(learner.outer_step([Task() for _ in range(4)]))
        if it % 40 == 39:
            print(f"iter {it + 1} query loss {sum(recent[-40:]) / 40:.4f}")


if __name__ == "__main__":
    main()
