"""A library counts, inspects and clears hooks through a module's dictionaries."""

import torch
from torch import nn

layer = nn.Linear(2, 2)
print(
    [
        len(getattr(layer, name))
        for name in (
            "_forward_hooks",
            "_forward_pre_hooks",
            "_backward_hooks",
            "_backward_pre_hooks",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_forward_pre_hooks_with_kwargs",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_non_persistent_buffers_set",
        )
    ]
)
print(
    type(layer._forward_hooks).__name__, type(layer._non_persistent_buffers_set).__name__, layer._is_full_backward_hook
)
seen = []
handle = layer.register_forward_hook(lambda module, args, out: seen.append("first"))
layer.register_forward_pre_hook(lambda module, args: seen.append("before"))
print(handle.id in layer._forward_hooks, len(layer._forward_pre_hooks))
layer._forward_hooks[10**9] = lambda module, args, out: seen.append("put in by key")
layer(torch.ones(1, 2))
print(seen)
layer._forward_hooks.clear()
layer._forward_pre_hooks.popitem()
layer(torch.ones(1, 2))
print(seen, len(layer._forward_hooks))
