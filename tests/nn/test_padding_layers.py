"""Padding layers: the same outputs, gradients, printed forms and errors as PyTorch's."""

import numpy as np
import pytest
import torch
from case import assert_same
from filled import BOTH, filled
from parity import assert_same as assert_expression

import backlight

SIDES = {1: (2, 1), 2: (2, 1, 0, 3), 3: (1, 2, 0, 1, 1, 0)}
KINDS = ("Circular", "Constant", "Reflection", "Replication", "Zero")
LAYERS = [(kind, dims) for kind in KINDS for dims in (1, 2, 3)]


def made(t, kind, dims, padding):
    extra = (0.5,) if kind == "Constant" else ()
    return getattr(t.nn, f"{kind}Pad{dims}d")(padding, *extra)


@pytest.mark.parametrize(("kind", "dims"), LAYERS)
@pytest.mark.parametrize("padding", ["one number", "sides"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-5)])
def test_output_and_gradient_equal_pytorch(kind, dims, padding, batch, dtype, tolerance):
    results = []
    for t in BOTH:
        layer = made(t, kind, dims, 1 if padding == "one number" else SIDES[dims])
        x = filled(t, *batch, 2, *(4, 5, 3)[:dims], dtype=dtype).requires_grad_()
        out = layer(x)
        (out * filled(t, *out.shape, dtype=dtype)).sum().backward()
        results.append((out.detach(), x.grad))
    assert_same(*results, tolerance, tolerance)


@pytest.mark.parametrize(("kind", "dims"), LAYERS)
def test_printed_form_is_pytorchs(kind, dims):
    for padding in (2, SIDES[dims]):
        ours, theirs = (repr(made(t, kind, dims, padding)) for t in BOTH)
        assert ours == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_padding_layers_have_no_state(kind):
    assert not made(backlight, kind, 2, 1).state_dict()


@pytest.mark.parametrize(
    "expression",
    [
        "torch.nn.CircularPad1d(1)(torch.ones(3))",
        "torch.nn.CircularPad2d(1)(torch.ones(3, 3))",
        "torch.nn.CircularPad3d(1)(torch.ones(3, 3))",
        "torch.nn.ConstantPad2d((1, 0, 2, 1), 7)(torch.arange(6).reshape(2, 3))",
        "torch.nn.ConstantPad1d((-1, 2), 0.25)(torch.ones(2, 3))",
        "torch.nn.ZeroPad2d((-1, 1, 0, 1))(torch.ones(2, 3))",
        "torch.nn.ZeroPad1d(2).value",
        "torch.nn.ReflectionPad2d(1).padding",
        "isinstance(torch.nn.ZeroPad3d(1), torch.nn.ConstantPad3d)",
    ],
)
def test_values_and_errors_are_pytorchs(expression):
    assert_expression(expression)


def test_reflection_of_more_than_the_dim_says_what_pytorch_says():
    for t in BOTH:
        with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
            t.nn.ReflectionPad1d(3)(t.ones(1, 1, 3))


def test_padding_twice_is_padding_by_the_sum():
    x = filled(backlight, 2, 5)
    twice = backlight.nn.ReplicationPad1d(1)(backlight.nn.ReplicationPad1d((1, 2))(x))
    np.testing.assert_array_equal(twice.numpy(), backlight.nn.ReplicationPad1d((2, 3))(x).numpy())
    assert torch.nn.ReplicationPad1d((2, 3))(filled(torch, 2, 5)).tolist() == twice.tolist()
