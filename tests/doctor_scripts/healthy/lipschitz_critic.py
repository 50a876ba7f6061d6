import torch
import torch.nn as nn


def critic_network():
    return nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))


def penalty(critic, a, b):
    t = torch.rand(len(a), 1)
    x = (t * a + (1 - t) * b).detach().requires_grad_()
    (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) - 1).square().mean()


def samples(n):
    source = torch.randn(n, 2)
    target = torch.randn(n, 2) * 0.5 + torch.tensor([2.0, -1.0])
    return source, target


def main():
    torch.manual_seed(0)
    critic = critic_network()
    optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
    for it in range(40):
        source, target = samples(48)
        distance = critic(target).mean() - critic(source).mean()
        optimizer.zero_grad()
        # the loss is negative while the critic is good: that is the aim
        (-distance).backward()
        gp = 10 * penalty(critic, source, target)
        gp.backward()
        optimizer.step()
        if it % 10 == 0:
            print(f"{it} distance {distance.item():+.3f} penalty {gp.item():.3f}")


if __name__ == "__main__":
    main()
