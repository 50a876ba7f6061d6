"""Forward mode: dual tensors, modules with dual weights, a custom Function with a jvp."""

import torch
from torch import nn
from torch.autograd import forward_ad as fwAD

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
primal, tangent = torch.randn(4), torch.randn(4)
with fwAD.dual_level():
    dual = fwAD.make_dual(primal, tangent)
    print(torch.equal(fwAD.unpack_dual(dual).tangent, tangent))
    out = torch.sin(dual) * 2
    print(torch.allclose(fwAD.unpack_dual(out).tangent, 2 * primal.cos() * tangent))
    print(fwAD.unpack_dual(dual + primal).tangent is not None)
print(fwAD.unpack_dual(primal).tangent)

model = nn.Linear(3, 2)
values = {name: (value, torch.rand_like(value)) for name, value in model.named_parameters()}
x = torch.randn(5, 3)
with fwAD.dual_level():
    for name, (value, direction) in values.items():
        delattr(model, name)
        setattr(model, name, fwAD.make_dual(value, direction))
    moved = fwAD.unpack_dual(model(x)).tangent
print(torch.allclose(moved, x @ values["weight"][1].T + values["bias"][1]))


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = torch.exp(x)
        ctx.result = result
        return result

    @staticmethod
    def jvp(ctx, given):
        moved = given * ctx.result
        del ctx.result
        return moved

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.result


with fwAD.dual_level():
    print(torch.allclose(fwAD.unpack_dual(Fn.apply(fwAD.make_dual(primal, tangent))).tangent, primal.exp() * tangent))
print(torch.autograd.gradcheck(lambda x: x.pow(3), primal.clone().requires_grad_(), check_forward_ad=True))
