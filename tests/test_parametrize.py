"""Parametrized weights: PyTorch's names, numbers and gradients."""

import numpy as np
import pytest
import torch

import backlight
from backlight.nn.utils import parametrizations, parametrize


def pair():
    ours, theirs = backlight.nn.Linear(3, 2).double(), torch.nn.Linear(3, 2).double()
    ours.load_state_dict({name: backlight.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    return ours, theirs


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_is_pytorchs(dim):
    ours, theirs = pair()
    parametrizations.weight_norm(ours, dim=dim)
    torch.nn.utils.parametrizations.weight_norm(theirs, dim=dim)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-12)
    (ours(backlight.ones(1, 3, dtype=backlight.float64)) ** 2).sum().backward()
    (theirs(torch.ones(1, 3, dtype=torch.float64)) ** 2).sum().backward()
    for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters()):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)


class Symmetric(backlight.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Doubled(backlight.nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_a_parameter_is_computed_from_its_original():
    layer = parametrize.register_parametrization(backlight.nn.Linear(3, 3), "weight", Symmetric())
    assert layer.weight.tolist() == layer.weight.T.tolist()
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]


def test_right_inverse_keeps_the_value_and_takes_an_assigned_one():
    layer = backlight.nn.Linear(2, 2)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == before
    layer.weight = backlight.ones(2, 2)
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert layer.parametrizations.weight.original.tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_two_layers_do_not_share_a_parametrization():
    one, two = backlight.nn.Linear(2, 2), backlight.nn.Linear(2, 2)
    parametrize.register_parametrization(one, "weight", Doubled())
    assert isinstance(two.weight, backlight.nn.Parameter)


@pytest.mark.parametrize("leave", [True, False])
def test_a_parametrization_can_be_removed(leave):
    layer = backlight.nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert type(layer) is backlight.nn.Linear
    assert layer.weight.tolist() == (before if leave else before / 2).tolist()
    assert {name for name, _ in layer.named_parameters()} == {"weight", "bias"}


def test_mistakes_have_pytorchs_words():
    layer = backlight.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="a buffer, or a parametrized element with name 'w'"):
        parametrize.register_parametrization(layer, "w", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")
    parametrizations.weight_norm(layer)
    with pytest.raises(ValueError, match="parametrized in terms of a sequence of tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
