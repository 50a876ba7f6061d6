import torch
from torch import nn


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad.sum(0)


torch.manual_seed(45)
w1, b1 = nn.Parameter(torch.randn(16, 3) * 0.5), nn.Parameter(torch.zeros(16))
w2, b2 = nn.Parameter(torch.randn(1, 16) * 0.2), nn.Parameter(torch.zeros(1))
x = torch.randn(120, 3)
y = torch.sin(x[:, :1]) + x[:, 1:2]
opt = torch.optim.Adam([w1, b1, w2, b2], lr=0.02)
for step in range(120):
    out = Affine.apply(torch.relu(Affine.apply(x, w1, b1)), w2, b2)
    loss = (out - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0 or step == 119:
        print(step, loss.item())
