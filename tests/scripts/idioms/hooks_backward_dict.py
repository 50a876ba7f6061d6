"""`_backward_hooks`, `_backward_pre_hooks` and `_is_full_backward_hook` as scripts read them."""

import torch
from torch import nn

layer = nn.Linear(2, 1)
print(layer._is_full_backward_hook)
handle = layer.register_full_backward_hook(lambda m, gi, go: print("full", len(gi), len(go)))
print(layer._is_full_backward_hook, handle.id in layer._backward_hooks)
pre = layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
print(len(layer._backward_pre_hooks))
x = torch.ones(1, 2, requires_grad=True)
layer(x).sum().backward()
print(layer.bias.grad.item())
layer._backward_pre_hooks.clear()
layer.zero_grad()
layer(x).sum().backward()
print(layer.bias.grad.item())
try:
    layer.register_backward_hook(print)
except RuntimeError as problem:
    print(problem)
handle.remove()
print(len(layer._backward_hooks), layer._backward_hooks)
