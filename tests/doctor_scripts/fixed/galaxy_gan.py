import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, z_dim=4, out_dim=2):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(nn.Linear(z_dim, 16), nn.ReLU(), nn.Linear(16, out_dim))

    def sample(self, n):
        return self.net(torch.randn(n, self.z_dim))


class Critic(nn.Module):
    def __init__(self, in_dim=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    grads = torch.autograd.grad(scores.sum(), mixed, create_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def real_batch(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1) * 2 + 0.1 * torch.randn(n, 2)


def train(gen, critic, iters=20, n_critic=3, lam=10.0):
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
    for it in range(iters):
        for _ in range(n_critic):
            real, fake = real_batch(32), gen.sample(32).detach()
            gp = gradient_penalty(critic, real, fake)
            loss_c = critic(fake).mean() - critic(real).mean() + lam * gp
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
        loss_g = -critic(gen.sample(32)).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if it % 5 == 0:
            print(f"{it:3d} critic {loss_c.item():+.3f} generator {loss_g.item():+.3f} gp {gp.item():.3f}")


def main():
    torch.manual_seed(0)
    train(Generator(), Critic())


if __name__ == "__main__":
    main()
