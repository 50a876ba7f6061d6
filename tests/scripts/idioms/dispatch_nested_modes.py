"""Modes inside each other, with no_grad, with exceptions, in functions of functions."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode


class Named(TorchDispatchMode):
    def __init__(self, name, act=None):
        super().__init__()
        self.name, self.act, self.seen = name, act, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        if self.name != "below":
            print(f"  {self.name}: {func}")
        if self.act is not None:
            return self.act(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


x = torch.tensor([1.0, -2.0], requires_grad=True)
with Named("outer") as outer:
    with Named("inner") as inner:
        print(_get_current_dispatch_mode() is inner)
        y = (x * 2).relu()
    print(_get_current_dispatch_mode() is outer)
    y.sum().backward()
print(x.grad, len(outer.seen), len(inner.seen), _get_current_dispatch_mode())


def doubled(func, args, kwargs):
    out = func(*args, **kwargs)
    return out * 2 if func == torch.ops.aten.sin.default else out


with Named("outer"), Named("doubles", doubled):
    z = x.sin()
print(torch.allclose(z, 2 * x.sin()), z.grad_fn.name())
(found,) = torch.autograd.grad(z.sum(), x)
print(torch.allclose(found, x.cos()))

with Named("quiet"), torch.no_grad():
    print((x + 1).requires_grad, torch.is_grad_enabled())
with torch.no_grad(), Named("quiet"):
    print((x - 1).requires_grad)


def failing(func, args, kwargs):
    raise ValueError(f"no {func}")


try:
    with Named("fails", failing):
        x.cos()
except ValueError as problem:
    print(problem)
print(_get_current_dispatch_mode(), x.cos().requires_grad)

with Named("again") as again:
    x.add(1)
with again:
    x.sub(1)
print(again.seen)


def score(value):
    return (value.sin() * value).sum()


with Named("below") as below:
    slope = torch.func.grad(score)(x.detach())
print(torch.allclose(slope, x.detach().cos() * x.detach() + x.detach().sin()))
print("aten.sin.default" in below.seen, "aten.cos.default" in below.seen)


class Unfinished(TorchDispatchMode):
    pass


try:
    with Unfinished():
        x.exp()
except NotImplementedError as problem:
    print("NotImplementedError", str(problem))
