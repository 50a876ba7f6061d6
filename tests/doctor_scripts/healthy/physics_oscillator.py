import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )
        self.log_stiffness = nn.Parameter(torch.tensor(0.0))

    def forward(self, t):
        return self.net(t)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(field, t):
    """u'' + k u, which is zero for a solution."""
    u = field(t)
    u_tt = derivative(derivative(u, t), t)
    return u_tt + field.log_stiffness.exp() * u


def main():
    torch.manual_seed(0)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=10)
    t_data = torch.linspace(0, 2, 12).unsqueeze(1)
    u_data = torch.cos(1.5 * t_data)
    t_physics = torch.linspace(0, 3, 24).unsqueeze(1).requires_grad_()
    for step in range(60):
        optimizer.zero_grad()
        data_loss = (field(t_data) - u_data).pow(2).mean()
        physics_loss = residual(field, t_physics).pow(2).mean()
        loss = data_loss + 1e-2 * physics_loss
        loss.backward()
        optimizer.step()
        scheduler.step(loss.detach())
        if step % 20 == 0:
            print(f"{step} data {data_loss.item():.4f} physics {physics_loss.item():.4f}")


if __name__ == "__main__":
    main()
