"""What a module's `__dict__` and its helper methods hold."""

import torch
from torch import nn


class Plain(nn.Module):
    pass


print(set(vars(Plain())) >= {"training", "_parameters", "_buffers", "_modules"})
layer = nn.Linear(2, 2)
print(layer._get_name(), layer._version)
layer._modules["extra"] = nn.ReLU()
layer._parameters["scale"] = nn.Parameter(torch.ones(1))
layer._buffers["count"] = torch.zeros(1)
print(layer, sorted(layer.state_dict()), layer.scale.shape)
for key, parameter in list(layer._parameters.items()):
    layer._parameters[key] = nn.Parameter(torch.zeros_like(parameter))
print(layer(torch.ones(1, 2)).tolist())
print([name for name, _ in layer._named_members(lambda module: module._buffers.items())])
