"""A mode that logs every op below autograd, of a forward and of its backward."""

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode


def shown(value):
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype)[6:]}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    return repr(value)


class Logging(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = "" if func.__name__.startswith("nll_loss_backward") else ", ".join(shown(one) for one in args)
        print(f"{func}({given}) -> {shown(out)}")
        return out


torch.manual_seed(0)
x = torch.randn(3, 4)
w = torch.randn(5, 4, requires_grad=True)
b = torch.zeros(5, requires_grad=True)
with Logging():
    hidden = torch.tanh(F.linear(x, w, b))
    loss = F.mse_loss(hidden, torch.ones_like(hidden))
    print("backward")
    loss.backward()
print(w.grad.sum().item().__round__(4), b.grad.shape)

with Logging():
    print("shapes")
    y = x.view(4, 3).t().unsqueeze(0)
    z = torch.cat([y, y]).sum(0, keepdim=True)
    z[0, 1:].mul_(2).add_(1)
    print(z.max().item() > 0)

with Logging():
    print("classes")
    logits = F.linear(x, w)
    loss = F.cross_entropy(logits, torch.zeros(3, dtype=torch.int64))
    (found,) = torch.autograd.grad(loss, w)
print(found.shape, loss.requires_grad, loss.grad_fn.name())

with Logging():
    print("twice")
    p = torch.ones(2, requires_grad=True)
    (p * p).sum().backward()
    p.exp().sum().backward()
print(p.grad)
