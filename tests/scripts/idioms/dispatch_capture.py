"""A mode that names every tensor, as tracers do, and one that counts bytes that ops make."""

from collections import Counter

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


class Tracer(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.kept, self.lines = [], []

    def name(self, one):
        if not isinstance(one, torch.Tensor):
            return one
        if all(one is not other for other in self.kept):
            self.kept.append(one)
        return f"${next(at for at, other in enumerate(self.kept) if other is one)}"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = tree_map(self.name, args)
        out = func(*args, **(kwargs or {}))
        self.lines.append(f"{tree_map(self.name, out)} = {func.__name__}{tuple(given)}")
        return out


x = torch.arange(6.0).reshape(2, 3)
with Tracer() as tracer:
    y = x.sin()
    z = y + x
    z.mul_(2)
    values, places = z.max(1)
    (values * 0.5).sum()
print("\n".join(tracer.lines))


class Bytes(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.made = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not func._schema.is_mutable:
            self.made[func.overloadpacket.__name__] += out.numel() * out.element_size()
        return out


torch.manual_seed(0)
layer = nn.Linear(3, 2)
with Bytes() as counted:
    layer(x).sigmoid().mean().backward()
print(sorted(counted.made.items()))
print(torch.ops.aten.add_.Tensor._schema.is_mutable, torch.ops.aten.add.Tensor._schema.name)
