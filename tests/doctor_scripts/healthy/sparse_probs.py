import torch
import torch.nn as nn
from torch.autograd import gradcheck


class Sparsemax(torch.autograd.Function):
    """Projection onto the simplex along the last axis, with its exact Jacobian product."""

    @staticmethod
    def forward(ctx, z):
        s, _ = z.sort(dim=-1, descending=True)
        k = torch.arange(1, z.size(-1) + 1, dtype=z.dtype)
        css = s.cumsum(-1) - 1
        size = (k * s > css).sum(-1, keepdim=True)
        tau = css.gather(-1, size - 1) / size
        p = (z - tau).clamp(min=0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        support = (p > 0).to(g.dtype)
        mean = (g * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        return support * (g - mean)


torch.manual_seed(0)
z = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
print("gradcheck", gradcheck(Sparsemax.apply, (z,)))


class Pool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.score, self.out = nn.Linear(d, 1), nn.Linear(d, 1)

    def forward(self, bags):
        w = Sparsemax.apply(self.score(bags).squeeze(-1))
        return self.out((w.unsqueeze(-1) * bags).sum(1)).squeeze(-1), w


# multiple instance learning: a bag is positive if one of its rows carries the mark
bags = torch.randn(128, 8, 5)
y = torch.arange(128) % 2
bags[y == 1, 0, 0] += 4.0
pool = Pool(5)
opt = torch.optim.Adam(pool.parameters(), lr=0.03)
for it in range(150):
    logit, w = pool(bags)
    loss = nn.functional.binary_cross_entropy_with_logits(logit, y.float())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0:
        print(it, loss.item(), "rows used per bag", (w > 0).float().sum(1).mean().item())
