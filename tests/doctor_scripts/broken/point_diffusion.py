import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class DiffusionConfig:
    steps: int = 40
    width: int = 64
    iters: int = 100
    batch: int = 128
    lr: float = 3e-3
    beta: tuple = field(default=(1e-3, 0.15))


def two_clusters(n):
    side = torch.randint(0, 2, (n, 1)).float() * 2 - 1
    return torch.cat([2 * side, 0.5 * side], dim=1) + 0.1 * torch.randn(n, 2)


class Schedule:
    def __init__(self, cfg):
        self.beta = torch.linspace(*cfg.beta, cfg.steps)
        self.alpha = 1 - self.beta
        self.alpha_bar = torch.cumprod(self.alpha, 0)

    def noise_to(self, x0, t, noise):
        a = self.alpha_bar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.steps = cfg.steps
        self.net = nn.Sequential(
            nn.Linear(2 + 8, cfg.width), nn.SiLU(), nn.Linear(cfg.width, cfg.width), nn.SiLU(), nn.Linear(cfg.width, 2)
        )

    def time_features(self, t):
        f = torch.arange(1, 5).float()
        ang = math.pi * f * t[:, None].float() / self.steps
        return torch.cat([ang.sin(), ang.cos()], 1)

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time_features(t)], 1))


def train(cfg, model, schedule):
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for it in range(cfg.iters):
        x0 = two_clusters(cfg.batch)
        t = torch.randint(0, cfg.steps, (cfg.batch,))
        noise = torch.randn_like(x0)
        x_t = schedule.noise_to(x0, t, noise)
        pred = model(x_t, t)
        loss = F.mse_loss(pred, x_t)  # here
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(f"iter {it} loss {loss.item():.4f}")


@torch.no_grad()
def sample(cfg, model, schedule, n):
    x = torch.randn(n, 2)
    for k in reversed(range(cfg.steps)):
        t = torch.full((n,), k)
        eps = model(x, t)
        coef = schedule.beta[k] / (1 - schedule.alpha_bar[k]).sqrt()
        x = (x - coef * eps) / schedule.alpha[k].sqrt()
        if k > 0:
            x = x + schedule.beta[k].sqrt() * torch.randn_like(x)
    return x


def main():
    torch.manual_seed(0)
    cfg = DiffusionConfig()
    schedule, model = Schedule(cfg), Denoiser(cfg)
    train(cfg, model, schedule)
    pts = sample(cfg, model, schedule, 256)
    print("mean |x| of samples", [round(v, 3) for v in pts.abs().mean(0).tolist()], "data [2.0, 0.5]")


if __name__ == "__main__":
    main()
