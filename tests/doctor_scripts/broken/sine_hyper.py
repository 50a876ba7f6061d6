"""A hypernetwork writes the weights of a small net for each sine wave."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Target(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


class HyperNet(nn.Module):
    def __init__(self, n_out, cond=2, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cond, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.to_weights = nn.Linear(width, n_out)

    def forward(self, c):
        return self.to_weights(self.body(c))


def split_like(vector, module):
    out, i = {}, 0
    for name, p in module.named_parameters():
        out[name] = vector[i : i + p.numel()].view_as(p)
        i += p.numel()
    return out


def draw_task():
    amp, phase = 0.5 + torch.rand(()), math.pi * torch.rand(())
    x = 4 * torch.rand(24, 1) - 2
    return torch.stack([amp, phase]), x, amp * torch.sin(2 * x + phase)


def predict(hyper, target, cond, x):
    flat = hyper(cond)
    vector_to_parameters(flat, target.parameters())  # here
    return target(x)  # here


def train(hyper, target, optimizer, iters, tasks=6):
    log = []
    for it in range(iters):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(tasks):
            cond, x, y = draw_task()
            loss = F.mse_loss(predict(hyper, target, cond, x), y) / tasks
            loss.backward()
            total += loss.item()
        optimizer.step()
        log.append(total)
        if it % 50 == 49:
            print(f"iter {it + 1} loss {sum(log[-50:]) / 50:.4f}")


def main():
    torch.manual_seed(0)
    target = Target()
    size = parameters_to_vector(target.parameters()).numel()
    hyper = HyperNet(size)
    print("weights to generate:", size)
    optimizer = torch.optim.Adam(hyper.parameters(), lr=3e-3)
    train(hyper, target, optimizer, iters=50)


if __name__ == "__main__":
    main()
