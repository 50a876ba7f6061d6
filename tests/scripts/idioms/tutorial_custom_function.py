"""Custom Functions: the Legendre polynomial, several outputs, non-tensor arguments, double backward, gradcheck."""

import math

import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class SplitScale(Function):
    @staticmethod
    def forward(x, factor, flag):
        return x * factor, x.sign().long() if flag else x.long()

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.factor, _ = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad, _):
        return None if grad is None else grad * ctx.factor, None, None


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].exp()


x = torch.linspace(-math.pi, math.pi, 200, dtype=torch.float64)
y = torch.sin(x)
a, b, c, d = (torch.full((), value, dtype=torch.float64, requires_grad=True) for value in (0.0, -1.0, 0.0, 0.3))
for step in range(300):
    loss = (a + b * LegendrePolynomial3.apply(c + d * x) - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
    if step % 100 == 99:
        print(step, f"{loss.item():.4f}")
print(f"y = {b.item():.4f} * P3({d.item():.4f} x)", abs(a.item()) < 1e-6, abs(c.item()) < 1e-6)
z = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
print(gradcheck(LegendrePolynomial3.apply, z), gradgradcheck(LegendrePolynomial3.apply, z))
scaled, signs = SplitScale.apply(z, 3.0, True)
print(scaled.grad_fn.name(), signs.requires_grad, signs.tolist(), torch.autograd.grad(scaled.sum(), z))
(first,) = torch.autograd.grad(Once.apply(z).sum(), z, create_graph=True)
try:
    first.sum().backward()
except RuntimeError as problem:
    print(str(problem)[:60])
