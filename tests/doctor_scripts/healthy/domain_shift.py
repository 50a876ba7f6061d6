"""Domain adversarial training with a gradient reversal layer."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self, d=6, width=24):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(d, width), nn.ReLU())
        self.label = nn.Linear(width, 2)
        self.domain = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        f = self.features(x)
        return self.label(f), self.domain(Reverse.apply(f, strength)).squeeze(1)


def make_domain(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    y = (x[:, 0] - x[:, 1] > 0).long()
    x[:, 2:] += shift
    return x, y


def main():
    torch.manual_seed(0)
    xs, ys = make_domain(256, 0.0, 1)
    xt, yt = make_domain(256, 1.5, 2)  # labels of the target domain only for testing
    source = DataLoader(TensorDataset(xs, ys), batch_size=32, shuffle=True)
    target = DataLoader(TensorDataset(xt), batch_size=32, shuffle=True)
    model = DANN()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    epochs = 10
    for epoch in range(epochs):
        strength = 2 / (1 + math.exp(-10 * epoch / epochs)) - 1
        for (a, y), (b,) in zip(source, target):
            logits, dom_a = model(a, strength)
            _, dom_b = model(b, strength)
            dom = torch.cat([dom_a, dom_b])
            dom_y = torch.cat([torch.zeros(len(a)), torch.ones(len(b))])
            task = F.cross_entropy(logits, y)
            adv = F.binary_cross_entropy_with_logits(dom, dom_y)
            opt.zero_grad()
            (task + adv).backward()
            opt.step()
        with torch.no_grad():
            acc = (model(xt, 0.0)[0].argmax(1) == yt).float().mean().item()
        print(f"{epoch} task {task.item():.3f} domain {adv.item():.3f} target acc {acc:.3f}")


if __name__ == "__main__":
    main()
