"""A hand-written Function with two inputs, a needs_input_grad test and a gradcheck."""

import torch
from torch import nn


class GatedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x * x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        grad_x = 2 * grad * x * gate if ctx.needs_input_grad[0] else None
        grad_gate = (grad * x * x).sum(0) if ctx.needs_input_grad[1] else None
        return grad_x, grad_gate


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Parameter(0.1 * torch.randn(dim))

    def forward(self, x):
        return GatedSquare.apply(x, self.gate)


torch.manual_seed(11)
check = (
    torch.randn(4, 3, dtype=torch.double, requires_grad=True),
    torch.randn(3, dtype=torch.double, requires_grad=True),
)
print("gradcheck", torch.autograd.gradcheck(GatedSquare.apply, check))
x = torch.randn(300, 5)
y = (x**2) @ torch.tensor([1.0, -0.5, 0.2, 0.0, 0.7])
model = nn.Sequential(Layer(5), nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.NAdam(model.parameters(), lr=0.01)
for i in range(100):
    loss = (model(x).squeeze(1) - y).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 75 == 0 or i == 299:
        print(i, loss.item())
