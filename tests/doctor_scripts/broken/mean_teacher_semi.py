"""Mean teacher: semi-supervised learning with few labels on spirals."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def spirals(n, arms=2, noise=0.08):
    label = torch.randint(0, arms, (n,))
    r = 0.2 + 1.2 * torch.rand(n)
    angle = 3.0 * r + 2 * math.pi * label / arms
    xy = torch.stack([r * angle.cos(), r * angle.sin()], dim=1)
    return xy + noise * torch.randn(n, 2), label


class Classifier(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.head(self.body(x))


def update_teacher(student, teacher, alpha):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(alpha).add_(s.data, alpha=1 - alpha)  # here


def ramp(step, length):
    x = min(step / length, 1.0)
    return math.exp(-5 * (1 - x) ** 2)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


class MeanTeacher:
    def __init__(self, labelled, unlabelled, weight=3.0):
        self.lx, self.ly = labelled
        self.ux = unlabelled
        self.weight = weight
        self.student = Classifier()
        self.teacher = copy.deepcopy(self.student)
        self.opt = torch.optim.Adam(self.student.parameters(), lr=5e-3)

    def step(self, i, total):
        u = self.ux[torch.randint(0, len(self.ux), (64,))]
        with torch.no_grad():
            target = self.teacher(u + 0.05 * torch.randn_like(u)).softmax(1)
        supervised = F.cross_entropy(self.student(self.lx), self.ly)
        consistency = F.mse_loss(self.student(u + 0.05 * torch.randn_like(u)).softmax(1), target)
        loss = supervised + self.weight * ramp(i, total / 2) * consistency
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        update_teacher(self.student, self.teacher, min(1 - 1 / (i + 1), 0.97))
        return supervised.item(), consistency.item()


def main():
    torch.manual_seed(5)
    x, y = spirals(40)
    ux, _ = spirals(600)
    tx, ty = spirals(400)
    mt = MeanTeacher((x, y), ux)
    steps = 30
    for i in range(steps):
        sup, con = mt.step(i, steps)
        if i % 60 == 0 or i == steps - 1:
            print(f"{i} supervised {sup:.4f} consistency {con:.5f}")
    print("student", accuracy(mt.student, tx, ty), "teacher", accuracy(mt.teacher, tx, ty))


if __name__ == "__main__":
    main()
