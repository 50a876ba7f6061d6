"""An ensemble in one call: stack_module_state, functional_call on the meta device, vmap over models."""

import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(0)
models = [nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)) for _ in range(3)]
params, buffers = stack_module_state(models)
print({name: tuple(value.shape) for name, value in params.items()}, buffers)
base = copy.deepcopy(models[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


data = torch.randn(3, 5, 4)
each = vmap(fmodel)(params, buffers, data)
same = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[0])
print(torch.allclose(each, torch.stack([model(x) for model, x in zip(models, data)]), atol=1e-5))
print(torch.allclose(same, torch.stack([model(data[0]) for model in models]), atol=1e-5), same.shape)
each.sum().backward()
print({name: value.grad is not None for name, value in params.items()})
