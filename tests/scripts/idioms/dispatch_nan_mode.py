"""A mode that stops at the first op that makes a NaN, in the forward or in the backward."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class NanCheck(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.isnan().any():
                raise RuntimeError(f"{func} made a NaN from {[tuple(a.shape) for a in args if hasattr(a, 'shape')]}")
        return out


def tried(act):
    try:
        with NanCheck():
            print(act())
    except RuntimeError as problem:
        print("stopped:", problem)


x = torch.tensor([1.0, 0.0, 4.0], requires_grad=True)
tried(lambda: (x * 2).sum().item())
tried(lambda: (x - 1).log().sum().item())
tried(lambda: (x / x).sum().item())
root = (x * 0).sqrt().sum()
tried(lambda: torch.autograd.grad(root, x))
print(torch.autograd.grad((x * 0).sqrt().sum(), x))


class Repair(TorchDispatchMode):
    """Puts zeros in place of NaN: what a handler returns is the result, and the gradient stays the op's."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out.nan_to_num(0.0) if func is torch.ops.aten.log.default or func == torch.ops.aten.log.default else out


with Repair():
    y = torch.tensor([1.0, -1.0], requires_grad=True)
    out = y.log()
    out.sum().backward()
print(out.tolist(), out.grad_fn.name(), y.grad)
