"""Hooks are taken off for a while by replacing the dictionary, and put back."""

from collections import OrderedDict

import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
calls = []
for module in model:
    module.register_forward_hook(lambda module, args, out: calls.append(type(module).__name__))
kept = {name: module._forward_hooks for name, module in model.named_modules()}
for module in model.modules():
    module._forward_hooks = OrderedDict()
model(torch.ones(1, 2))
print(calls)
for name, module in model.named_modules():
    module._forward_hooks = kept[name]
model(torch.ones(1, 2))
print(calls)


def drop_hooks(model):
    for child in model.children():
        if hasattr(child, "_forward_hooks"):
            child._forward_hooks.clear()
        drop_hooks(child)


drop_hooks(model)
model(torch.ones(1, 2))
print(len(calls))
