"""Clipping gradients and parameters as vectors: PyTorch's numbers and words."""

import numpy as np
import pytest
import torch

import backlight


def pair(gradients, dtype="float64"):
    """Return parameters with the same gradients on each side."""
    made = []
    for module in (backlight, torch):
        params = [module.nn.Parameter(module.zeros(*np.shape(g), dtype=getattr(module, dtype))) for g in gradients]
        for param, gradient in zip(params, gradients):
            param.grad = module.tensor(gradient, dtype=getattr(module, dtype))
        made.append(params)
    return made


GRADIENTS = [np.array([[3.0, -4.0], [1.0, 0.5]]), np.array([12.0, -7.0, 0.0])]


@pytest.mark.parametrize("norm_type", [2.0, 1, 3.5, float("inf"), 0])
@pytest.mark.parametrize("max_norm", [0.5, 1000.0])
def test_clipping_by_norm_is_pytorchs(max_norm, norm_type):
    ours, theirs = pair(GRADIENTS)
    mine = backlight.nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    other = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert mine.item() == pytest.approx(other.item(), rel=1e-12)
    for one, two in zip(ours, theirs):
        np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-12)


def test_clipping_by_value_is_pytorchs():
    ours, theirs = pair(GRADIENTS)
    backlight.nn.utils.clip_grad_value_(ours, 2)
    torch.nn.utils.clip_grad_value_(theirs, 2)
    assert [one.grad.tolist() for one in ours] == [two.grad.tolist() for two in theirs]


def test_one_tensor_and_a_generator_will_do_and_no_gradient_is_no_problem():
    (one, two), _ = pair(GRADIENTS)
    two.grad = None
    assert backlight.nn.utils.clip_grad_norm_(one, 1.0).item() == pytest.approx(np.sqrt(9 + 16 + 1 + 0.25))
    total = backlight.nn.utils.clip_grad_norm_((each for each in (one, two)), 1.0)
    assert total.item() == pytest.approx(1.0, abs=1e-6)
    assert backlight.nn.utils.clip_grad_norm_([two], 1.0).item() == 0.0


def test_an_empty_generator_warns_at_the_users_line():
    with pytest.warns(UserWarning, match="is an empty generator, no gradient clipping will occur") as caught:
        backlight.nn.utils.clip_grad_norm_((each for each in ()), 1.0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_norm_that_is_not_finite_has_pytorchs_words(value):
    (ours,), (theirs,) = pair([np.array([value])])
    with pytest.raises(RuntimeError) as other:
        torch.nn.utils.clip_grad_norm_([theirs], 1.0, error_if_nonfinite=True)
    with pytest.raises(RuntimeError) as mine:
        backlight.nn.utils.clip_grad_norm_([ours], 1.0, error_if_nonfinite=True)
    assert str(mine.value) == str(other.value)
    assert ours.grad.tolist() == pytest.approx([value], nan_ok=True)


def test_the_norm_of_tensors_is_pytorchs():
    tensors = [module.tensor([3.0, 4.0]) for module in (backlight, torch)]
    mine = backlight.nn.utils.get_total_norm([tensors[0], tensors[0]])
    assert mine.item() == torch.nn.utils.get_total_norm([tensors[1], tensors[1]]).item()


def test_parameters_go_to_a_vector_and_back():
    layer = backlight.nn.Linear(3, 2)
    vector = backlight.nn.utils.parameters_to_vector(layer.parameters())
    assert vector.tolist() == [*layer.weight.flatten().tolist(), *layer.bias.tolist()]
    assert vector.requires_grad
    backlight.nn.utils.vector_to_parameters(backlight.arange(8.0), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert layer.bias.tolist() == [6.0, 7.0]
    assert isinstance(layer.weight, backlight.nn.Parameter)


def test_what_is_no_vector_of_that_length_is_refused():
    layer = backlight.nn.Linear(3, 2)
    with pytest.raises(TypeError, match=r"expected torch\.Tensor, but got: list"):
        backlight.nn.utils.vector_to_parameters([1.0], layer.parameters())
    with pytest.raises(RuntimeError, match=r"is invalid for input of size 1; the vector has 7 elements"):
        backlight.nn.utils.vector_to_parameters(backlight.arange(7.0), layer.parameters())
