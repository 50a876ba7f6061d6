"""DP-SGD: per-sample gradients with vmap, clipped one by one, plus noise."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, vmap


@dataclass
class DP:
    max_norm: float = 1.0
    noise: float = 0.5
    lr: float = 0.5
    batch: int = 64
    steps: int = 40


class Patients(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 16), nn.GroupNorm(4, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        return self.net(x)


class PrivateTrainer:
    def __init__(self, model, dp):
        self.model, self.dp = model, dp
        self.opt = torch.optim.SGD(model.parameters(), lr=dp.lr)
        self.per_sample = vmap(grad_and_value(self.loss_one), in_dims=(None, 0, 0))

    def loss_one(self, params, x, y):
        return F.cross_entropy(functional_call(self.model, params, (x[None],)), y[None])

    def step(self, x, y):
        params = {k: p.detach() for k, p in self.model.named_parameters()}
        grads, losses = self.per_sample(params, x, y)
        flat = torch.cat([g.flatten(1) for g in grads.values()], dim=1)
        factor = (self.dp.max_norm / (flat.norm(dim=1) + 1e-6)).clamp(max=1.0)
        self.opt.zero_grad()
        for name, p in self.model.named_parameters():
            total = torch.einsum("n,n...->...", factor, grads[name])
            total += self.dp.noise * self.dp.max_norm * torch.randn_like(total)
            p.grad = total / len(x)
        self.opt.step()
        return losses.mean().item(), (factor < 1).float().mean().item()


def main():
    torch.manual_seed(0)
    dp = DP()
    x = torch.randn(512, 7)
    y = (x[:, 0] + x[:, 1] * 0.5 > 0).long()
    model = Patients()
    trainer = PrivateTrainer(model, dp)
    for k in range(dp.steps):
        idx = torch.randint(0, len(x), (dp.batch,))
        loss, clipped = trainer.step(x[idx], y[idx])
        if k % 10 == 0:
            print(f"step {k} loss {loss:.3f} clipped {clipped:.2f}")
    with torch.no_grad():
        print("accuracy", (model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
