"""Optimizers on complex parameters: steps and state as PyTorch's, which takes them as pairs of real numbers."""

import numpy as np
import pytest
import torch

import backlight
import backlight.optim

RNG = np.random.default_rng(0)
START, TARGET = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)) for _ in range(2))
OPTIMIZERS = [
    ("SGD", {"lr": 0.02}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("Adamax", {}),
    ("ASGD", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("LBFGS", {"lr": 0.1}),
    ("LBFGS", {"line_search_fn": "strong_wolfe"}),
]


def trained(t, name: str, options: dict):
    """Return a matrix and a number, both complex, after six steps, and the optimizer's state."""
    matrix = t.tensor(START.tolist(), dtype=t.complex128, requires_grad=True)
    number = t.tensor(0.3 - 0.2j, dtype=t.complex128, requires_grad=True)
    target = t.tensor(TARGET.tolist(), dtype=t.complex128)
    optimizer = getattr(t.optim, name)([matrix, number], **options)

    def closure():
        optimizer.zero_grad()
        loss = ((matrix * matrix * number - target).abs() ** 2).sum()
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(closure)
    return matrix.detach().numpy(), number.detach().numpy(), optimizer.state_dict()["state"].get(0, {})


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_complex_parameters_are_stepped_as_pytorch_steps_them(name, options):
    ours, theirs = trained(backlight, name, options), trained(torch, name, options)
    for one, other in zip(ours[:2], theirs[:2]):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    for entry, value in theirs[2].items():
        if isinstance(value, torch.Tensor) and name != "LBFGS":
            assert str(ours[2][entry].dtype) == str(value.dtype)
            np.testing.assert_allclose(ours[2][entry].numpy(), value.numpy(), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_optimizers_without_a_rule_for_complex_parameters_refuse_them(name):
    for t in (torch, backlight):
        matrix = t.ones(2, 2, dtype=t.complex64, requires_grad=True)
        matrix.abs().sum().backward()
        with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
            getattr(t.optim, name)([matrix]).step()


def test_gradient_norms_of_complex_parameters_are_clipped():
    found = []
    for t in (torch, backlight):
        matrix = t.tensor([3 + 4j, 1j], requires_grad=True)
        (matrix * (2 - 1j)).abs().sum().backward()
        found.append((float(t.nn.utils.clip_grad_norm_([matrix], 0.5)), *matrix.grad.tolist()))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
