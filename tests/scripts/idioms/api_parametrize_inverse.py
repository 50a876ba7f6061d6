"""Parametrizations with a right_inverse: the parameter stays the same object, and what does not fit is refused."""

import copy
import pickle

import torch
import torch.nn.utils.parametrize as parametrize
from said import attempt
from torch import nn
from torch.nn.utils import prune


class Scaled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


class Returning(nn.Module):
    def __init__(self, inverse):
        super().__init__()
        self.inverse = inverse

    def forward(self, *parts):
        return parts[0]

    def right_inverse(self, x):
        return self.inverse(x)


layer = nn.Linear(2, 2)
weight = layer.weight
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
parametrize.register_parametrization(layer, "weight", Scaled())
print(layer.parametrizations.weight.original is weight)
layer.weight = torch.ones(2, 2)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(layer.weight, layer.parametrizations.weight.original)
twin = copy.deepcopy(layer)
print(torch.equal(twin.weight, layer.weight), type(twin).__name__, twin.parametrizations.weight.unsafe)
attempt("refused 1", lambda: pickle.dumps(layer))
parametrize.remove_parametrizations(layer, "weight")
print(layer.weight is weight, layer.weight)

for inverse in (lambda x: 3, lambda x: (x, 3), lambda x: x.double()):
    attempt("inverse", lambda: parametrize.register_parametrization(nn.Linear(2, 2), "weight", Returning(inverse)))
layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Returning(lambda x: (x, x + 1)))
print(sorted(layer.state_dict()))
attempt(
    "refused 3",
    lambda: setattr(
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Identity()), "weight", torch.ones(2, 2)
    ),
)
attempt("refused 4", lambda: parametrize.register_parametrization(nn.Linear(2, 2), "nothing", nn.Identity()))
attempt("refused 5", lambda: parametrize.ParametrizationList([], torch.ones(1)))

torch.manual_seed(0)
memory = nn.LSTM(2, 2)
prune.l1_unstructured(memory, "weight_hh_l0", 0.5)
print(memory(torch.ones(1, 1, 2))[0].detach(), isinstance(memory.weight_hh_l0, nn.Parameter))
print(prune._compute_nparams_toprune(0.5, 7), prune._compute_norm(torch.ones(2, 3), 2, 0))
attempt("refused 6", lambda: prune._validate_pruning_amount_init(-1.0))
attempt("refused 7", lambda: prune._validate_pruning_amount(5, 3))
attempt("refused 8", lambda: prune._validate_structured_pruning(torch.ones(2)))
attempt("refused 9", lambda: nn.Module(3))
attempt("refused 10", lambda: nn.Module(foo=3))
