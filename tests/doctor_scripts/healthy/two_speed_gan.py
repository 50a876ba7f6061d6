"""1-D GAN with a faster critic, several critic steps, and gradient penalty."""

from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Cfg:
    iters: int = 50
    n_critic: int = 3
    g_lr: float = 1e-3
    d_lr: float = 4e-3
    gp: float = 0.5
    batch: int = 64


def net(i, o, w=32):
    return nn.Sequential(nn.Linear(i, w), nn.LeakyReLU(0.2), nn.Linear(w, w), nn.LeakyReLU(0.2), nn.Linear(w, o))


def real_data(n):
    return 3.0 + 0.5 * torch.randn(n, 1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    return (grad.norm(2, dim=1) - 1).pow(2).mean()


class WGAN:
    def __init__(self, cfg):
        self.cfg = cfg
        self.G, self.C = net(2, 1), net(1, 1)
        self.g_opt = torch.optim.Adam(self.G.parameters(), lr=cfg.g_lr, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.C.parameters(), lr=cfg.d_lr, betas=(0.0, 0.9))

    def sample(self, n):
        return self.G(torch.randn(n, 2))

    def critic_step(self):
        real = real_data(self.cfg.batch)
        with torch.no_grad():
            fake = self.sample(self.cfg.batch)
        w = self.C(real).mean() - self.C(fake).mean()
        loss = -w + self.cfg.gp * gradient_penalty(self.C, real, fake)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return w.item()

    def generator_step(self):
        self.C.requires_grad_(False)  # only the generator is differentiated here
        loss = -self.C(self.sample(self.cfg.batch)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        self.C.requires_grad_(True)

    def train(self):
        for it in range(self.cfg.iters):
            for _ in range(self.cfg.n_critic):
                w = self.critic_step()
            self.generator_step()
            if it % 20 == 0:
                with torch.no_grad():
                    m = self.sample(256).mean().item()
                print(f"{it:3d} W {w:.3f} sample mean {m:.2f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    WGAN(Cfg()).train()
