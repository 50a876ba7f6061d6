"""Small calls of the kinds that PyTorch's own tests make: same values, or PyTorch's error and its first line."""

import pytest
import torch

import backlight

VALUES = {
    "round to decimals": lambda m: m.tensor([2.345, 1.005, -0.125, 2.5e10]).round(decimals=2).tolist(),
    "hann window": lambda m: m.hann_window(4, periodic=False).tolist(),
    "bartlett window": lambda m: m.bartlett_window(7, periodic=False).tolist(),
    "is_set_to": lambda m: [m.zeros(3).is_set_to(m.zeros(3)), *_set_to(m.zeros(3))],
    "parameter dicts merged": lambda m: [list(one) for one in _merged(m.nn.ParameterDict)],
    "parametrizations transferred": lambda m: _transferred(m),
}
ERRORS = {
    "interpolate mode": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), scale_factor=2, mode="linear"),
    "interpolate name": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), scale_factor=2, mode="zz"),
    "pad mode": lambda m: m.nn.functional.pad(m.ones(1, 1, 2, 2), (1, 1), mode="zz"),
    "pad away": lambda m: m.nn.ReplicationPad1d((-5, 0))(m.ones(1, 1, 4)),
    "hardtanh": lambda m: m.nn.Hardtanh(1.0, 0.0),
    "one number a group": lambda m: m.nn.functional.group_norm(m.ones(1, 4), 4),
    "layer norm of integers": lambda m: m.nn.LayerNorm(3)(m.ones(1, 3, dtype=m.int64)),
    "batch norm of integers": lambda m: m.nn.BatchNorm1d(2)(m.ones(3, 2, dtype=m.int64)),
    "padding of a batch": lambda m: _attention(m, m.ones(2, 2, dtype=m.bool)),
    "padding of keys": lambda m: _attention(m, m.ones(1, 3, dtype=m.bool)),
    "projected GRU": lambda m: m.nn.GRU(2, 3, proj_size=1),
    "projected RNN": lambda m: m.nn.RNN(2, 3, proj_size=1),
    "pruning a missing name": lambda m: _prune(m).l1_unstructured(m.nn.Linear(2, 2), "nope", 1),
    "scores of pruning": lambda m: _prune(m).l1_unstructured(m.nn.Linear(2, 2), "bias", 1, importance_scores=3),
    "take_along_dim": lambda m: m.take_along_dim(m.ones(2, 3), m.tensor([0.0]), 0),
    "indices of index_put": lambda m: m.zeros(2, 3).index_put((m.tensor([0]),) * 3, m.tensor(1.0)),
    "complex fill": lambda m: m.zeros(2).index_fill(0, m.tensor([0]), 1j),
    "expand": lambda m: m.ones(2, 1).expand(2),
    "strides": lambda m: m.empty_strided((2,), (1, 2)),
    "empty column_stack": lambda m: m.column_stack([]),
    "recursive list": lambda m: m.tensor(_recursive()),
    "device index": lambda m: m.device("cuda:1", 2),
    "negative device": lambda m: m.device(-1),
    "sorted complex": lambda m: m.tensor([1j]).sort(),
}


def _set_to(tensor):
    return [tensor.is_set_to(tensor), tensor.is_set_to(tensor.view(3)), tensor.is_set_to(tensor[1:])]


def _merged(kind):
    first, second = kind({"a": None}), kind({"b": None})
    yield first | second
    yield {"c": None} | second
    first |= second
    yield first
    yield second.fromkeys(["x", "y"])


def _transferred(module):
    parametrize = module.nn.utils.parametrize
    source, target = module.nn.Linear(2, 1), module.nn.Linear(2, 1)
    parametrize.register_parametrization(source, "weight", module.nn.Identity())
    parametrize.transfer_parametrizations_and_params(source, target)
    same = target.parametrizations.weight.original is source.parametrizations.weight.original
    return same, parametrize.is_parametrized(target, "weight"), parametrize.is_parametrized(target, "bias")


def _attention(module, mask):
    x = module.ones(2, 1, 4)
    return module.nn.MultiheadAttention(4, 2)(x, x, x, key_padding_mask=mask)


def _prune(module):
    return backlight.nn.utils.prune if module is backlight else __import__("torch.nn.utils.prune").nn.utils.prune


def _recursive():
    items = [1]
    items.append(items)
    return items


@pytest.mark.parametrize("name", VALUES)
def test_a_call_gives_pytorchs_values(name):
    assert VALUES[name](backlight) == VALUES[name](torch)


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_raises_pytorchs_error(name):
    raised = []
    for module in (torch, backlight):
        with pytest.raises(Exception) as caught:
            ERRORS[name](module)
        raised.append(caught.value)
    theirs, ours = raised
    assert isinstance(ours, type(theirs))
    assert str(ours).startswith(str(theirs).splitlines()[0].rstrip("."))
