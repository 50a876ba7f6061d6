"""Two-moons GAN with lazy R1 regularisation of the critic."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def moons(n):
    upper = torch.rand(n) < 0.5
    angle = math.pi * torch.rand(n)
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class R1GAN:
    def __init__(self, latent=4, gamma=1.0, every=4):
        self.latent, self.gamma, self.every = latent, gamma, every
        self.gen = mlp(latent, 64, 64, 2)
        self.critic = mlp(2, 64, 64, 1)
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=1e-3, betas=(0.0, 0.99))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=2e-3, betas=(0.0, 0.99))

    def noise(self, n):
        return torch.randn(n, self.latent)

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.gen(self.noise(len(real)))
        loss = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake)).mean()
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        return loss.item()

    def regularise(self, real):
        real = real.detach().requires_grad_(True)
        score = self.critic(real).sum()
        (grad,) = torch.autograd.grad(score, real, create_graph=True)
        penalty = 0.5 * self.gamma * self.every * grad.pow(2).sum(1).mean()
        self.opt_c.zero_grad()
        penalty.backward()
        self.opt_c.step()
        return penalty.item()

    def generator_step(self, n):
        self.critic.requires_grad_(False)
        loss = F.softplus(-self.critic(self.gen(self.noise(n)))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.critic.requires_grad_(True)
        return loss.item()

    def train(self, steps, batch):
        penalty = 0.0
        for step in range(steps):
            c = self.critic_step(moons(batch))
            if step % self.every == 0:
                penalty = self.regularise(moons(batch))
            g = self.generator_step(batch)
            if step % 100 == 0 or step == steps - 1:
                print(f"step {step} critic {c:.3f} gen {g:.3f} r1 {penalty:.4f}")


def distance_to_moons(points):
    with torch.no_grad():
        return torch.cdist(moons(500), points).min(1).values.mean().item()


def main():
    torch.manual_seed(14)
    gan = R1GAN()
    print("start", round(distance_to_moons(gan.gen(gan.noise(200))), 3))
    gan.train(20, 96)
    print("end", round(distance_to_moons(gan.gen(gan.noise(200))), 3))


if __name__ == "__main__":
    main()
