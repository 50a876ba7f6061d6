"""Distil a wide net into a narrow one."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def mlp(width, depth, d_in=16, k=10):
    layers, d = [], d_in
    for _ in range(depth):
        layers += [nn.Linear(d, width), nn.ReLU()]
        d = width
    return nn.Sequential(*layers, nn.Linear(d, k))


def make_data(n=600):
    g = torch.Generator().manual_seed(8)
    centres = 0.8 * torch.randn(10, 16, generator=g)
    y = torch.randint(0, 10, (n,), generator=g)
    return centres[y] + 0.7 * torch.randn(n, 16, generator=g), y


class Distiller:
    def __init__(self, teacher, student, temperature, alpha):
        self.teacher = teacher.eval()
        self.student = student
        self.T, self.alpha = temperature, alpha
        self.kl = nn.KLDivLoss(reduction="batchmean")

    def loss(self, x, y):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.T, dim=1)
        logits = self.student(x)
        kd = self.kl(F.log_softmax(logits / self.T, dim=1), soft) * self.T**2
        return self.alpha * kd + (1 - self.alpha) * F.cross_entropy(logits, y), kd.item()


def fit_teacher(loader):
    net = mlp(128, 2)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(8):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
    return net


def agreement(a, b, x):
    with torch.no_grad():
        return (a(x).argmax(1) == b(x).argmax(1)).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--temperature", type=float, default=3.0)
    ap.add_argument("--alpha", type=float, default=0.9)
    ap.add_argument("--epochs", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(0)
    x, y = make_data()
    loader = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40, shuffle=True)
    teacher = fit_teacher(loader)
    student = mlp(12, 1)
    distiller = Distiller(teacher, student, args.temperature, args.alpha)
    opt = torch.optim.Adam(student.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        student.train()
        for xb, yb in loader:
            loss, kd = distiller.loss(xb, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.4f} kd {kd:.4f} agreement {agreement(teacher, student, x[400:]):.3f}")


if __name__ == "__main__":
    main()
