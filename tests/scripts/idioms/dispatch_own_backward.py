"""A subclass whose product has another backward: a Function on wrapped tensors, chosen by the class."""

import torch
from torch.utils._pytree import tree_map


class StraightThrough(torch.autograd.Function):
    """The product, whose gradient is clipped to one."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.ops.aten.mul.Tensor(x, y)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return (grad * y).clamp(-1, 1), (grad * x).clamp(-1, 1)


class Clipped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad)
        made.inner = inner
        return made

    def __repr__(self):
        return f"Clipped({self.inner.tolist()})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.mul, torch.Tensor.mul, torch.Tensor.__mul__):
            with torch._C.DisableTorchFunctionSubclass():
                return StraightThrough.apply(*args)
        return super().__torch_function__(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print("  ", func)
        plain = tree_map(lambda one: one.inner if isinstance(one, cls) else one, (args, kwargs or {}))
        out = func(*plain[0], **plain[1])
        return tree_map(lambda one: cls(one) if isinstance(one, torch.Tensor) else one, out)


x = Clipped(torch.tensor([0.5, 5.0]), requires_grad=True)
y = Clipped(torch.tensor([3.0, -0.25]))
out = x * y
print(out, out.grad_fn.name())
out.sum().backward()
print(x.grad)
x.grad = None
torch.add(x, y).mul(x).sum().backward()
print(x.grad)
