"""Gradients for each sample by functional_call, grad and vmap, beside a loop."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
data, targets = torch.randn(5, 1, 4, 4), torch.randint(0, 3, (5,))


def compute_grad(sample, target):
    loss = F.cross_entropy(model(sample.unsqueeze(0)), target.unsqueeze(0))
    return torch.autograd.grad(loss, list(model.parameters()))


looped = [torch.stack(each) for each in zip(*(compute_grad(*pair) for pair in zip(data, targets)))]
params = {name: value.detach() for name, value in model.named_parameters()}
buffers = {name: value.detach() for name, value in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return F.cross_entropy(predictions, target.unsqueeze(0))


per_sample = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
for ours, (name, value) in zip(looped, per_sample.items()):
    print(name, tuple(value.shape), torch.allclose(ours, value, atol=1e-9))
norms = torch.stack([value.flatten(1).norm(dim=1) for value in per_sample.values()]).norm(dim=0)
print([f"{norm:.4f}" for norm in norms.tolist()])
clipped = {name: (value.flatten(1) / norms.unsqueeze(1).clamp_min(1)).mean(0) for name, value in per_sample.items()}
print({name: f"{value.norm():.4f}" for name, value in clipped.items()})
