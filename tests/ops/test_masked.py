"""`backlight.masked`: what PyTorch's samples do not ask (tests/data/opinfo_passing.txt has those)."""

import numpy as np
import pytest
import torch

import backlight

VALUES = [[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]]
MASK = [[True, False, True], [False, False, False]]


@pytest.mark.parametrize("name", ["argmax", "argmin", "sum", "amax", "mean", "std"])
def test_reduction_of_rows_some_masked_out_equals_pytorch(name):
    ours = getattr(backlight.masked, name)(backlight.tensor(VALUES), 1, mask=backlight.tensor(MASK))
    theirs = getattr(torch.masked, name)(torch.tensor(VALUES), 1, mask=torch.tensor(MASK))
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "std"])
def test_reduction_of_integers_equals_pytorch(name):
    values = [[1, 2, 3], [4, 5, 6]]
    ours = getattr(backlight.masked, name)(backlight.tensor(values), 1, mask=backlight.tensor(MASK))
    theirs = getattr(torch.masked, name)(torch.tensor(values), 1, mask=torch.tensor(MASK))
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.masked.mean(t.tensor([1, 2])),
        lambda t: t.masked.median(t.tensor([[1, 2]]), mask=t.tensor([[False, False]])),
        lambda t: t.masked.sum(t.tensor([1.0, 2.0]), mask=t.ones(1, 2)),
    ],
)
def test_error_begins_with_pytorchs_words(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(Exception) as ours:
        call(backlight)
    assert str(ours.value).startswith(str(theirs.value))
    assert isinstance(ours.value, type(theirs.value))


def test_gradient_reaches_only_what_the_mask_lets_through():
    x = backlight.tensor(VALUES, requires_grad=True)
    backlight.masked.sum(x, mask=backlight.tensor(MASK)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.array(MASK, float))
