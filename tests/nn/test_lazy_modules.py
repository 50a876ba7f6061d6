"""Lazy modules: they print, initialize, load and convert as PyTorch's do."""

import copy

import pytest
import torch
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression

import backlight
from backlight.nn.modules.lazy import LazyModuleMixin

LAYERS = [
    ("LazyLinear(3)", (2, 5)),
    ("LazyLinear(3, bias=False)", (2, 4, 5)),
    *[(f"LazyConv{dims}d(4, 3, padding=1)", (2, 6, *(5,) * dims)) for dims in (1, 2, 3)],
    ("LazyConv2d(4, (3, 1), stride=2, groups=2, bias=False, padding_mode='circular')", (6, 5, 5)),
    *[(f"LazyConvTranspose{dims}d(4, 3, stride=2)", (2, 6, *(3,) * dims)) for dims in (1, 2, 3)],
    ("LazyConvTranspose2d(4, 3, 2, 1, 1, 2, False, 1)", (2, 6, 3, 3)),
    *[(f"LazyBatchNorm{dims}d()", (3, 6, *(2,) * dims)) for dims in (1, 2, 3)],
    ("LazyBatchNorm1d(1e-3, None, affine=False)", (3, 6)),
    ("LazyBatchNorm2d(track_running_stats=False, bias=False)", (3, 6, 2, 2)),
    *[(f"LazyInstanceNorm{dims}d()", (3, 6, *(2,) * dims)) for dims in (1, 2, 3)],
]
each = pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=[layer for layer, _ in LAYERS])


def made(t, layer, seed=0):
    t.manual_seed(seed)
    return eval(f"t.nn.{layer}")


@each
def test_a_lazy_layer_prints_and_draws_as_pytorchs(layer, shape):
    ours, theirs = (made(t, layer) for t in BOTH)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.has_uninitialized_params() == theirs.has_uninitialized_params()
    outs = [one(filled(t, *shape)) for one, t in zip((ours, theirs), BOTH)]
    assert repr(ours) == repr(theirs)
    assert type(ours).__name__ == type(theirs).__name__
    assert_same(list(ours.state_dict().values()), list(theirs.state_dict().values()), 1e-6, 1e-6)
    assert_same(*outs, 1e-4, 1e-5)


@each
def test_the_gradient_after_the_first_call_equals_pytorchs(layer, shape):
    results = []
    for t in BOTH:
        module = made(t, layer).double()
        x = filled(t, *shape, dtype="float64").requires_grad_()
        out = module(x)
        (out * filled(t, *out.shape, dtype="float64", start=0.4)).sum().backward()
        results.append([x.grad, *(parameter.grad for parameter in module.parameters())])
    assert_same(*results, 1e-8, 1e-8)


@each
def test_a_lazy_layer_loads_the_state_of_an_ordinary_one(layer, shape):
    source, target = made(backlight, layer), made(backlight, layer, 1)
    x = filled(backlight, *shape)
    source(x)
    assert str(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert not target.has_uninitialized_params()
    expected, found = list(source.state_dict().values()), list(target.state_dict().values())
    assert all(backlight.equal(a, b) for a, b in zip(expected, found))
    assert target(x).shape == source(x).shape
    assert repr(target).startswith(repr(source).split("(")[0])


def test_an_optimizer_made_before_the_first_call_trains_the_parameters():
    layer = backlight.nn.LazyLinear(2)
    optimizer = backlight.optim.SGD(layer.parameters(), lr=0.1)
    layer(backlight.ones(1, 3)).sum().backward()
    before = layer.weight.detach().clone()
    optimizer.step()
    assert backlight.allclose(layer.weight, before - 0.1)


def test_copies_are_initialized_each_for_itself():
    layer = backlight.nn.LazyLinear(2)
    other = copy.deepcopy(layer)
    layer(backlight.ones(1, 3))
    other(backlight.ones(1, 5))
    assert (layer.in_features, other.in_features) == (3, 5)


def test_a_dtype_chosen_before_the_first_call_is_kept():
    for t in BOTH:
        assert str(t.nn.LazyLinear(2).double().weight.dtype) == "torch.float64"
        layer = t.nn.LazyBatchNorm1d(dtype=t.float64)
        layer(filled(t, 3, 4, dtype="float64"))
        assert str(layer.running_mean.dtype) == "torch.float64"


def test_lazy_state_loads_into_a_lazy_layer_and_leaves_it_lazy():
    for t in BOTH:
        layer = t.nn.LazyLinear(2)
        layer.load_state_dict(t.nn.LazyLinear(2).state_dict())
        assert layer.has_uninitialized_params()


def test_lazy_state_does_not_load_into_an_ordinary_layer():
    for t in BOTH:
        with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
            t.nn.Linear(3, 2).load_state_dict(t.nn.LazyLinear(2).state_dict())


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda t, p: p + 1, ValueError, "Attempted to use an uninitialized parameter in"),
        (lambda t, p: t.sum(p), ValueError, "Attempted to use an uninitialized parameter in"),
        (lambda t, p: p.shape, RuntimeError, "Can't access the shape of an uninitialized parameter or buffer"),
        (lambda t, p: p.detach(), ValueError, "Attempted to use an uninitialized parameter in"),
    ],
)
@pytest.mark.parametrize("kind", ["UninitializedParameter", "UninitializedBuffer"])
def test_using_an_uninitialized_tensor_says_what_pytorch_says(use, error, message, kind):
    for t in BOTH:
        tensor = getattr(t.nn.parameter, kind)()
        assert repr(tensor) == f"<{kind}>"
        assert t.nn.parameter.is_lazy(tensor)
        with pytest.raises(error, match=message):
            use(t, tensor)


def test_materializing_makes_an_ordinary_parameter_of_the_same_object():
    for t in BOTH:
        parameter = t.nn.UninitializedParameter(dtype=t.float64)
        parameter.materialize((2, 3))
        assert type(parameter) is t.nn.Parameter
        assert tuple(parameter.shape) == (2, 3)
        assert parameter.requires_grad and parameter.dtype == t.float64


@pytest.mark.parametrize(
    "expression",
    [
        "torch.nn.LazyConv2d(4, 3)(torch.ones(3, 3))",
        "torch.nn.LazyConv2d(4, 3, groups=2)(torch.ones(1, 3, 3, 3))",
        "torch.nn.LazyBatchNorm1d()(torch.ones(2, 3, 4, 5))",
        "torch.nn.LazyInstanceNorm2d().eval()(torch.ones(2, 3, 4, 5)).shape",
        "torch.nn.LazyConv2d(3, 3, groups=2)",
        "torch.nn.LazyLinear(2).weight.requires_grad",
        "torch.nn.LazyLinear(2, bias=False).bias",
        "isinstance(torch.nn.LazyLinear(2), torch.nn.Linear)",
    ],
)
def test_values_and_errors_are_pytorchs(expression):
    assert_expression(expression)


def lazy_scale(t, mixin, complete=True):
    class Scale(mixin, t.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = t.nn.UninitializedParameter()

        def initialize_parameters(self, input):
            if complete and self.has_uninitialized_params():
                self.factor.materialize(input.shape[-1:])
                t.nn.init.ones_(self.factor)

        def forward(self, input):
            return input * self.factor

    return Scale()


def test_a_lazy_module_of_ones_own_keeps_its_class_and_runs_again():
    for t, mixin in ((backlight, LazyModuleMixin), (torch, torch.nn.modules.lazy.LazyModuleMixin)):
        module = lazy_scale(t, mixin)
        assert module(t.ones(2, 3)).tolist() == module(t.ones(2, 3)).tolist() == [[1.0] * 3] * 2
        assert type(module).__name__ == "Scale"


def test_a_lazy_module_that_leaves_parameters_open_is_an_error():
    for t, mixin in ((backlight, LazyModuleMixin), (torch, torch.nn.modules.lazy.LazyModuleMixin)):
        with pytest.raises(RuntimeError, match="module Scale has not been fully initialized"):
            lazy_scale(t, mixin, complete=False)(t.ones(3))
