"""Jacobians and Hessians: by autograd, jacrev, jacfwd, hessian, batched, and hvp by both modes."""

import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
weight, bias, x = torch.randn(3, 3), torch.randn(3), torch.randn(3)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


rows = []
xp = x.clone().requires_grad_()
for unit in torch.eye(3):
    rows.append(torch.autograd.grad(predict(weight, bias, xp), xp, unit)[0])
jacobian = torch.stack(rows)
for way in (jacrev, jacfwd):
    print(torch.allclose(way(predict, argnums=2)(weight, bias, x), jacobian))
_, pull = vjp(lambda x: predict(weight, bias, x), x)
print(torch.allclose(vmap(pull)(torch.eye(3))[0], jacobian))
print(torch.allclose(jacobian, (1 - predict(weight, bias, x) ** 2).unsqueeze(1) * weight))
second = hessian(predict, argnums=2)(weight, bias, x)
print(second.shape, torch.allclose(second, jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)))
batch = torch.randn(4, 3)
print(vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch).shape)


def f(x):
    return x.sin().sum()


vector = torch.randn(3)
forward = jvp(grad(f), (x,), (vector,))[1]
backward = vjp(grad(f), x)[1](vector)[0]
print(torch.allclose(forward, backward), torch.allclose(forward, -x.sin() * vector))
print([f"{each:.4f}" for each in forward.tolist()])
