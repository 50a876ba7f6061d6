"""Physics-informed fit of a damped oscillator  u'' + 0.4 u' + 4 u = 0."""

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=24, depth=2):
        super().__init__()
        layers = [nn.Linear(1, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        layers += [nn.Linear(width, 1)]
        self.net = nn.Sequential(*layers)

    def forward(self, t):
        return self.net(t)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u))[0]  # here


def residual(model, t, damping, stiffness):
    t = t.clone().requires_grad_(True)
    u = model(t)
    du = derivative(u, t)
    ddu = derivative(du, t)  # here
    return ddu + damping * du + stiffness * u


def initial_conditions(model):
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = model(t0)
    v0 = torch.autograd.grad(u0.sum(), t0, create_graph=True)[0]
    return (u0 - 1.0).pow(2).mean() + v0.pow(2).mean()


class Solver:
    def __init__(self, damping=0.4, stiffness=4.0, lr=5e-3):
        self.damping, self.stiffness = damping, stiffness
        self.model = Field()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=150, gamma=0.5)

    def step(self, t):
        self.opt.zero_grad()
        phys = residual(self.model, t, self.damping, self.stiffness).pow(2).mean()
        ic = initial_conditions(self.model)
        loss = phys + 10.0 * ic
        loss.backward()
        self.opt.step()
        self.sched.step()
        return phys.item(), ic.item()

    def fit(self, steps):
        for k in range(steps):
            t = 2.0 * torch.rand(32, 1)
            phys, ic = self.step(t)
            if k % 100 == 0:
                print(f"step {k:4d} residual {phys:.4f} initial {ic:.5f}")
        return phys, ic


def main():
    torch.manual_seed(0)
    solver = Solver()
    phys, ic = solver.fit(100)
    print("done", phys, ic)


if __name__ == "__main__":
    main()
