"""Pruning under its import path."""

import torch
import torch.nn.utils.prune as prune
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3)
prune.l1_unstructured(layer, "weight", amount=0.5)
print(sorted(name for name, _ in layer.named_buffers()), sorted(name for name, _ in layer.named_parameters()))
print(int((layer.weight == 0).sum()), prune.is_pruned(layer), len(layer._forward_pre_hooks))
hook = next(iter(layer._forward_pre_hooks.values()))
print(type(hook).__name__, hook._tensor_name)
prune.random_structured(layer, name="weight", amount=1, dim=0)
for hook in layer._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        print(type(hook).__name__, [type(one).__name__ for one in hook])
prune.remove(layer, "weight")
print(sorted(name for name, _ in layer.named_parameters()), prune.is_pruned(layer))
prune.ln_structured(layer, "weight", amount=0.34, n=2, dim=1)
print((layer.weight == 0).all(0).sum().item())
model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
prune.global_unstructured([(model[0], "weight"), (model[1], "weight")], pruning_method=prune.L1Unstructured, amount=6)
print(sum(int((m.weight == 0).sum()) for m in model))
prune.custom_from_mask(model[0], "bias", torch.tensor([1, 0, 1]))
print(model[0].bias_mask)


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


EveryOther.apply(model[1], "bias")
print(model[1].bias_mask.tolist())
