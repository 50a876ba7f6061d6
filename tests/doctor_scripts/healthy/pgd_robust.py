"""Adversarial training: the attack takes gradients with respect to the input in eval mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def data(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 1, 8, 8) * 0.3
    for i, k in enumerate(y.tolist()):
        x[i, 0, 2 * k : 2 * k + 2] += 1.0
    return x, y


def pgd(model, x, y, eps=0.3, step=0.1, iters=4):
    was_training = model.training
    model.eval()
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(iters):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + step * grad.sign()).clamp(-eps, eps)
    model.train(was_training)
    return x + delta.detach()


def main():
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(128, 3),
    )
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    x, y = data(320)
    for epoch in range(6):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            adv = pgd(model, x[idx], y[idx])
            opt.zero_grad()
            loss = F.cross_entropy(model(adv), y[idx])
            loss.backward()
            opt.step()
            total += loss.item()
        print("epoch", epoch, "robust loss", round(total / 5, 4))
    tx, ty = data(100)
    adv = pgd(model, tx, ty)
    model.eval()
    with torch.no_grad():
        print(
            "clean",
            (model(tx).argmax(1) == ty).float().mean().item(),
            "robust",
            (model(adv).argmax(1) == ty).float().mean().item(),
        )


if __name__ == "__main__":
    main()
