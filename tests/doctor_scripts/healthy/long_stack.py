"""Deep residual net trained with activation checkpointing; gradients match the plain run."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class ResBlock(nn.Module):
    def __init__(self, dim, drop=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.f1 = nn.Linear(dim, 2 * dim)
        self.f2 = nn.Linear(2 * dim, dim)
        self.drop = nn.Dropout(drop)
        nn.init.zeros_(self.f2.weight)
        nn.init.zeros_(self.f2.bias)

    def forward(self, x):
        return x + self.drop(self.f2(torch.relu(self.f1(self.norm(x)))))


class Stack(nn.Module):
    def __init__(self, dim, depth, use_ckpt=True):
        super().__init__()
        self.inp = nn.Linear(4, dim)
        self.blocks = nn.ModuleList(ResBlock(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 1)
        self.use_ckpt = use_ckpt

    def forward(self, x):
        h = self.inp(x)
        for blk in self.blocks:
            if self.use_ckpt and self.training:
                h = checkpoint(blk, h, use_reentrant=False)
            else:
                h = blk(h)
        return self.out(h).squeeze(-1)


def grads_with(model, flag, x, y):
    model.use_ckpt = flag
    model.zero_grad()
    torch.manual_seed(99)  # same dropout masks
    nn.functional.mse_loss(model(x), y).backward()
    return [p.grad.clone() for p in model.parameters()]


def main():
    torch.manual_seed(0)
    x = torch.randn(128, 4)
    y = x[:, 0] * x[:, 1] + x[:, 2].abs()
    model = Stack(16, 8)
    model.train()
    same = all(
        torch.allclose(a, b, atol=1e-6) for a, b in zip(grads_with(model, True, x, y), grads_with(model, False, x, y))
    )
    print("gradients equal:", same)
    model.use_ckpt = True
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(30):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))
    model.eval()
    with torch.no_grad():
        print("eval mse", nn.functional.mse_loss(model(x), y).item())


if __name__ == "__main__":
    main()
