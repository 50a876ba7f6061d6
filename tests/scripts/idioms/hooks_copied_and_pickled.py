"""A copied module keeps hooks of its own; old pickles without the newer dictionaries still load."""

import copy
import pickle

import torch
from torch import nn


def twice(module, args, out):
    return out * 2


layer = nn.ReLU()
layer.register_forward_hook(twice)
other = copy.deepcopy(layer)
layer._forward_hooks.clear()
print(layer(torch.ones(1)).item(), other(torch.ones(1)).item(), len(other._forward_hooks))
again = pickle.loads(pickle.dumps(other))
print(again(torch.ones(1)).item(), len(again._forward_hooks))
state = dict(nn.Linear(1, 1).__dict__)
for newer in (
    "_forward_hooks_with_kwargs",
    "_backward_pre_hooks",
    "_state_dict_pre_hooks",
    "_non_persistent_buffers_set",
):
    state.pop(newer, None)
old = nn.Linear.__new__(nn.Linear)
old.__setstate__(state)
print(len(old._forward_hooks_with_kwargs), len(old._backward_pre_hooks), old(torch.ones(1, 1)).shape)
