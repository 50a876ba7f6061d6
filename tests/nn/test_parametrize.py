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


def test_right_inverse_keeps_the_value_of_the_first_and_takes_an_assigned_one():
    layer = backlight.nn.Linear(2, 2)
    before = layer.weight.detach()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.equal(before)
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.equal(2 * before)  # as in PyTorch: the second is given what the first computes
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


# --- spectral_norm and orthogonal: number for number, with PyTorch's start --------------------------------------------


def layers_alike(kind: str, *sizes: int):
    """Return a layer of each engine with the same weight."""
    theirs, ours = getattr(torch.nn, kind)(*sizes), getattr(backlight.nn, kind)(*sizes)
    ours.load_state_dict({key: backlight.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    return theirs, ours


def assert_alike(theirs, ours, tolerance: float = 2e-5) -> None:
    """Check that value and gradient of what is computed are PyTorch's, in training and in eval."""
    slopes = (
        np.random.default_rng(3).normal(size=tuple(theirs.parametrizations.weight.original.shape)).astype("float32")
    )
    for step in range(3):
        for layer, engine in ((theirs, torch), (ours, backlight)):
            layer.zero_grad()
            (layer.weight * engine.tensor(slopes)).sum().backward()
        np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=tolerance)
        for (name, one), (_, other) in zip(theirs.named_parameters(), ours.named_parameters(), strict=True):
            if one.grad is not None:
                np.testing.assert_allclose(other.grad.numpy(), one.grad.numpy(), atol=10 * tolerance, err_msg=name)
        if step:
            theirs.eval()
            ours.eval()


@pytest.mark.parametrize(
    ("kind", "sizes", "options"),
    [
        ("Linear", (5, 3), {}),
        ("Conv2d", (2, 3, 2), {"n_power_iterations": 3}),
        ("ConvTranspose1d", (2, 3, 2), {}),
        ("Linear", (4, 4), {"dim": 1, "eps": 1e-6}),
        ("LayerNorm", (4,), {}),
    ],
)
def test_spectral_norm_is_pytorchs(kind, sizes, options):
    theirs, ours = layers_alike(kind, *sizes)
    for engine, layer in ((torch, theirs), (backlight, ours)):
        engine.manual_seed(5)
        engine.nn.utils.parametrizations.spectral_norm(layer, **options)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), atol=1e-5, err_msg=key)
    assert_alike(theirs, ours)


@pytest.mark.parametrize("trivialised", [True, False])
@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (4, 2)])
def test_orthogonal_is_pytorchs(sizes, way, trivialised):
    theirs, ours = layers_alike("Linear", *sizes)
    for engine, layer in ((torch, theirs), (backlight, ours)):
        engine.manual_seed(5)
        engine.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=way, use_trivialization=trivialised)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    assert_alike(theirs, ours)
    weight = ours.weight.detach().numpy()
    weight = weight if weight.shape[0] <= weight.shape[1] else weight.T
    np.testing.assert_allclose(weight @ weight.T, np.eye(len(weight)), atol=1e-5)


WRONG = {
    "a dim": lambda engine: engine.nn.utils.parametrizations.spectral_norm(engine.nn.Linear(2, 2), dim=2),
    "no iterations": lambda engine: engine.nn.utils.parametrizations.spectral_norm(
        engine.nn.Linear(2, 2), n_power_iterations=0
    ),
    "a name": lambda engine: engine.nn.utils.parametrizations.spectral_norm(engine.nn.Linear(2, 2), "w"),
    "a name for orthogonal": lambda engine: engine.nn.utils.parametrizations.orthogonal(engine.nn.Linear(2, 2), "w"),
    "a vector": lambda engine: engine.nn.utils.parametrizations.orthogonal(engine.nn.Linear(2, 2), "bias"),
    "a map": lambda engine: engine.nn.utils.parametrizations.orthogonal(engine.nn.Linear(2, 2), orthogonal_map="qr"),
    "an assignment": lambda engine: setattr(
        engine.nn.utils.parametrizations.orthogonal(
            engine.nn.Linear(2, 2), orthogonal_map="cayley", use_trivialization=False
        ),
        "weight",
        engine.eye(2),
    ),
    "another shape": lambda engine: engine.nn.utils.parametrize.register_parametrization(
        engine.nn.Linear(2, 3), "weight", engine.nn.Flatten(0)
    ),
    "another shape, the second time": lambda engine: engine.nn.utils.parametrize.register_parametrization(
        engine.nn.utils.parametrize.register_parametrization(engine.nn.Linear(2, 3), "weight", engine.nn.Identity()),
        "weight",
        engine.nn.Flatten(0),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_has_pytorchs_message(case):
    said = []
    for engine in (torch, backlight):
        with pytest.raises((ValueError, IndexError, NotImplementedError)) as caught:
            WRONG[case](engine)
        said.append(str(caught.value))
    assert said[1].startswith(said[0])


def test_an_unsafe_parametrization_may_change_the_shape():
    layer = parametrize.register_parametrization(
        backlight.nn.Linear(2, 3), "weight", backlight.nn.Flatten(0), unsafe=True
    )
    assert layer.weight.shape == (6,)


def test_a_refused_parametrization_leaves_the_module_as_it_was():
    layer = backlight.nn.Linear(2, 3)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", backlight.nn.Flatten(0))
    assert type(layer) is backlight.nn.Linear and [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_inside_cached_a_tensor_is_computed_once():
    for engine in (torch, backlight):
        parts = engine.nn.utils.parametrize
        layer = parts.register_parametrization(engine.nn.Linear(2, 2), "weight", engine.nn.Identity())
        layer = parts.register_parametrization(layer, "weight", engine.nn.Dropout(0.5), unsafe=True)
        with parts.cached():
            first = layer.weight
            with parts.cached():
                assert layer.weight is first
            assert layer.weight is first
        assert layer.weight is not first
        with parts.cached():
            assert layer.weight is not first
