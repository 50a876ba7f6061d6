import torch
from torch import nn


class SoftShrink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x)
        ctx.lam = lam
        return torch.sign(x) * torch.clamp(x.abs() - lam, min=0)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        grad = grad_out * (x.abs() > ctx.lam).to(grad_out.dtype)
        return grad  # here


torch.manual_seed(3)
dictionary = nn.Linear(10, 30)
decoder = nn.Linear(30, 10)
signal = torch.randn(64, 10)
opt = torch.optim.Adam(list(dictionary.parameters()) + list(decoder.parameters()), lr=1e-2)

for it in range(100):
    code = SoftShrink.apply(dictionary(signal), 0.1)
    loss = (decoder(code) - signal).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 25 == 0:
        print(it, float(loss.detach()), "sparsity", (code == 0).float().mean().item())
