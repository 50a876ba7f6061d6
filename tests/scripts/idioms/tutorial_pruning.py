"""Pruning: random and by size, structured, iterated, global, a method of one's own, made permanent."""

import torch
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.fc1, self.fc2 = nn.Conv2d(1, 3, 3), nn.Linear(12, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.relu(self.conv1(x)).flatten(1))))


model = LeNet()
module = model.conv1
prune.random_unstructured(module, name="weight", amount=0.3)
print([name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()])
print(int((module.weight == 0).sum()), type(next(iter(module._forward_pre_hooks.values()))).__name__)
prune.l1_unstructured(module, name="bias", amount=2)
print(int((module.bias == 0).sum()), len(module._forward_pre_hooks))
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
print([int((row == 0).all()) for row in module.weight])
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        print([type(each).__name__ for each in hook])
model(torch.ones(1, 1, 4, 4)).sum().backward()
print((module.weight_orig.grad[module.weight_mask == 0] == 0).all().item(), sorted(model.state_dict()))
prune.remove(module, "weight")
print([name for name, _ in module.named_parameters()])
prune.global_unstructured(
    ((model.fc1, "weight"), (model.fc2, "weight")), pruning_method=prune.L1Unstructured, amount=0.4
)
zeros = [int((each.weight == 0).sum()) for each in (model.fc1, model.fc2)]
print(sum(zeros), prune.is_pruned(model))


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


EveryOther.apply(model.fc2, "bias")
print(model.fc2.bias_mask)
