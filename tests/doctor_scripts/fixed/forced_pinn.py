"""Physics-informed net for u' = 3 cos(3t), u(0) = 1 on [0, 2]."""

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, t):
        return self.net(t)


def ode_residual(model, t, omega):
    t = t.clone().requires_grad_(True)
    u = model(t)
    du = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    return du - omega * torch.cos(omega * t)


def initial_condition_loss(model):
    t0 = torch.zeros(1, 1)
    return (model(t0) - 1.0).pow(2).mean()


def solve(model, omega=3.0, steps=100, n_points=48):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for step in range(steps):
        t = torch.rand(n_points, 1) * 2.0
        physics = ode_residual(model, t, omega).pow(2).mean()
        loss = physics + 10.0 * initial_condition_loss(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            print(f"step {step:4d} physics {physics.item():.5f} total {loss.item():.5f}")
    return model


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = solve(Field())
    t = torch.linspace(0, 2, 101).unsqueeze(1)
    with torch.no_grad():
        err = (model(t) - (1.0 + torch.sin(3.0 * t))).abs().max().item()
    print(f"max error against 1 + sin(3t): {err:.4f}")


if __name__ == "__main__":
    main()
