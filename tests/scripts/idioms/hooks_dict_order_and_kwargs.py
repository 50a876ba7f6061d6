"""Hooks with keyword arguments, prepended, always called: which dictionaries know of them."""

import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, x, *, by=2.0):
        if by < 0:
            raise ValueError("negative")
        return x * by


layer, calls = Scale(), []
first = layer.register_forward_hook(lambda m, a, k, o: calls.append(("kwargs", sorted(k), o.item())), with_kwargs=True)
second = layer.register_forward_hook(lambda m, a, o: calls.append("prepended"), prepend=True)
third = layer.register_forward_hook(lambda m, a, o: calls.append("always"), always_call=True)
pre = layer.register_forward_pre_hook(lambda m, a, k: (a, {"by": k["by"] + 1}), with_kwargs=True)
print(list(layer._forward_hooks) == [second.id, first.id, third.id])
print(first.id in layer._forward_hooks_with_kwargs, third.id in layer._forward_hooks_always_called)
print(pre.id in layer._forward_pre_hooks_with_kwargs, len(layer._forward_hooks_with_kwargs))
print(layer(torch.tensor(3.0), by=4.0).item(), calls)
calls.clear()
try:
    layer(torch.tensor(3.0), by=-4.0)
except ValueError as problem:
    print(problem, calls)
first.remove()
third.remove()
pre.remove()
print(len(layer._forward_hooks), len(layer._forward_hooks_with_kwargs), len(layer._forward_hooks_always_called))
print(len(layer._forward_pre_hooks_with_kwargs))
