"""A tensor subclass with a unit: products multiply units, sums need equal ones, gradients flow to the numbers."""

import torch
from torch.utils._pytree import tree_map

aten = torch.ops.aten


class Quantity(torch.Tensor):
    @staticmethod
    def __new__(cls, value, unit, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(cls, value.shape, dtype=value.dtype, requires_grad=requires_grad)
        made.value, made.unit = value, unit
        return made

    def __repr__(self):
        return f"Quantity({self.value.tolist()} {self.unit or '1'})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        units = [one.unit for one in args if isinstance(one, Quantity)]
        plain = tree_map(lambda one: one.value if isinstance(one, Quantity) else one, args)
        if func in (aten.add.Tensor, aten.sub.Tensor) and len(set(units)) > 1:
            raise TypeError(f"{func}: {units[0]} and {units[1]} cannot be added")
        if func == aten.mul.Tensor:
            unit = "·".join(sorted(one for one in units if one))
        elif func == aten.ones_like.default:
            unit = ""
        else:
            unit = units[0] if units else ""
        out = func(*plain, **(kwargs or {}))
        return Quantity(out, unit) if isinstance(out, torch.Tensor) else out


length = Quantity(torch.tensor([2.0, 3.0]), "m", requires_grad=True)
time = Quantity(torch.tensor([4.0, 5.0]), "s")
print(length, length + length, length * time, (length * 3).neg())
try:
    length + time
except TypeError as problem:
    print(problem)
work = (length * time).sum()
print(work, work.grad_fn.name())
work.backward()
print(length.grad, type(length.grad).__name__)
length.grad = None
(length * length).sum().backward()
print(length.grad)
print(isinstance(length, torch.Tensor), length.detach().requires_grad, torch.stack([time.value]).shape)
