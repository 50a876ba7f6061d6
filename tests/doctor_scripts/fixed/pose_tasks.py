"""Pose net: rotation and translation regressed together with learned uncertainties."""

import math
from itertools import chain

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class UncertaintyLoss(nn.Module):
    def __init__(self, n_tasks):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(n_tasks))

    def forward(self, losses):
        losses = torch.stack(losses)
        return (torch.exp(-self.log_var) * losses + self.log_var).sum()


class PoseNet(nn.Module):
    def __init__(self, n_points=6, width=48):
        super().__init__()
        self.shared = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * n_points, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.rot = nn.Linear(width, 2)
        self.trans = nn.Linear(width, 2)

    def forward(self, pts):
        h = self.shared(pts)
        return self.rot(h), self.trans(h)


def poses(n, seed):
    g = torch.Generator().manual_seed(seed)
    shape = torch.randn(6, 2, generator=torch.Generator().manual_seed(1))
    angle = math.pi * (torch.rand(n, generator=g) - 0.5)
    shift = 20 * torch.randn(n, 2, generator=g)
    c, s = angle.cos(), angle.sin()
    rot = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    pts = torch.einsum("nij,pj->npi", rot, shape) + shift[:, None] / 10
    return pts, torch.stack([c, s], -1), shift


class Trainer:
    def __init__(self, lr=3e-3):
        self.net, self.criterion = PoseNet(), UncertaintyLoss(2)
        self.opt = torch.optim.Adam(chain(self.net.parameters(), self.criterion.parameters()), lr=lr)
        self.train_loader = DataLoader(TensorDataset(*poses(320, 2)), batch_size=32, shuffle=True)
        self.val = poses(100, 3)

    def epoch(self):
        for pts, rot, shift in self.train_loader:
            rot_hat, shift_hat = self.net(pts)
            loss = self.criterion([F.mse_loss(rot_hat, rot), F.mse_loss(shift_hat, shift)])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        pts, rot, shift = self.val
        rot_hat, shift_hat = self.net(pts)
        return F.mse_loss(rot_hat, rot).item(), F.mse_loss(shift_hat, shift).item()

    def run(self, epochs):
        for e in range(epochs):
            loss = self.epoch()
            if e % 5 == 4:
                r, t = self.validate()
                lv = [round(v, 3) for v in self.criterion.log_var.tolist()]
                print(f"epoch {e + 1} loss {loss:.3f} rot {r:.4f} trans {t:.3f} log_var {lv}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer().run(10)
