"""Parametrizations: symmetric, skew by a chain, orthogonal, with a right inverse, cached and removed."""

import torch
from torch import nn
from torch.nn.utils import parametrize

torch.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Skew(nn.Module):
    def forward(self, x):
        upper = x.triu(1)
        return upper - upper.transpose(-1, -2)


class CayleyMap(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("identity", torch.eye(n))

    def forward(self, x):
        return torch.linalg.solve(self.identity + x, self.identity - x)


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
print(layer, torch.equal(layer.weight, layer.weight.T))
layer.weight = torch.arange(9.0).reshape(3, 3)
print(layer.parametrizations.weight.original, layer.weight, sep="\n")
print([name for name, _ in layer.named_parameters()], parametrize.is_parametrized(layer, "weight"))
chained = nn.Linear(3, 3)
parametrize.register_parametrization(chained, "weight", Skew())
parametrize.register_parametrization(chained, "weight", CayleyMap(3))
print(torch.allclose(chained.weight @ chained.weight.T, torch.eye(3), atol=1e-5))
chained(torch.ones(2, 3)).sum().backward()
print(chained.parametrizations.weight.original.grad.shape)
with parametrize.cached():
    print(chained.weight is chained.weight)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
torch.nn.utils.parametrizations.orthogonal(model[0])
print(torch.dist(model[0].weight.T @ model[0].weight, torch.eye(4)).item() < 1e-5)
normed = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 2), name="weight")
print(sorted(normed.state_dict()))
parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
print(layer, layer.weight, sep="\n")
