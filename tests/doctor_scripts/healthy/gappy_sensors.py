"""Imputation of sensor series with missing values; loss only where something was measured."""

import argparse

import torch
import torch.nn as nn


def sensors(n, length, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 8, length)
    phase = 6.28 * torch.rand(n, 1, 1, generator=g)
    shift = torch.tensor([0.0, 0.7, 1.4])
    full = torch.sin(t[None, :, None] + phase + shift)
    observed = torch.rand(n, length, 3, generator=g) > 0.4
    x = full.clone()
    x[~observed] = float("nan")
    return x, full, observed


class Imputer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.rnn = nn.GRU(6, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 3)

    def forward(self, values, mask):
        # NaN must be replaced before it enters the net: NaN * 0 is NaN
        clean = torch.nan_to_num(values, nan=0.0)
        h, _ = self.rnn(torch.cat([clean * mask, mask], dim=-1))
        return self.out(h)


def masked_mse(pred, target, mask):
    diff = torch.where(mask, pred - torch.nan_to_num(target), torch.zeros_like(pred))
    return diff.pow(2).sum() / mask.sum().clamp(min=1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--hide", type=float, default=0.2)
    args = ap.parse_args()
    torch.manual_seed(0)
    x, full, observed = sensors(48, 24, 1)
    model = Imputer()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(args.steps):
        hidden = observed & (torch.rand_like(full) < args.hide)
        visible = observed & ~hidden
        pred = model(x, visible.float())
        loss = masked_mse(pred, x, hidden) + 0.2 * masked_mse(pred, x, visible)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            with torch.no_grad():
                err = (model(x, observed.float()) - full)[~observed].abs().mean().item()
            print(f"step {step} loss {loss.item():.4f} true error on gaps {err:.4f}")


if __name__ == "__main__":
    main()
