"""Native steps of optimizers do what their NumPy references do, at every level, in both types and any size."""

import numpy as np
import pytest
import torch
from for_each import together

import backlight
from backlight.kernels.native import compiled
from backlight.kernels.nn import optimizer_steps

KINDS = (np.float32, np.float64)
SIZES = [0, 1, 3, 16, 37, 1000, 70_001]

# step: (arrays of state, whether each must be positive, options)
STEPS = {
    "sgd": (optimizer_steps.sgd_step, [None], (0.1, 0.0, 1, False, 1, 0.01)),
    "sgd with momentum": (optimizer_steps.sgd_step, ["any"], (0.1, 0.9, 0.7, False, -1, 0.0)),
    "sgd with Nesterov's": (optimizer_steps.sgd_step, ["any"], (0.1, 0.9, 1, True, 1, 0.1)),
    "adam": (optimizer_steps.adam_step, ["any", "positive", None], (0.1, 0.1, 0.999, 1e-8, 1.5, 0.99, 1, 0.0)),
    "adam with amsgrad": (
        optimizer_steps.adam_step,
        ["any", "positive", "positive"],
        (0.1, 0.1, 0.9, 1e-3, 1.5, 1, -1, 0.1),
    ),
    "nadam": (optimizer_steps.nadam_step, ["any", "positive"], (0.1, 0.2, 0.1, 0.9, 1e-8, 1.2, 0.99, 1, 0.1)),
    "radam": (optimizer_steps.radam_step, ["any", "positive"], (0.1, 0.1, 0.9, 1e-8, 0.5, 0.9, 1, 0.1)),
    "radam at first": (optimizer_steps.radam_step, ["any", "positive"], (0.1, 0.1, 0.9, 1e-8, 0.0, 1, -1, 0.0)),
    "adamax": (optimizer_steps.adamax_step, ["any", "positive"], (0.1, 0.1, 0.9, 1e-8, 1, 0.1)),
    "adagrad": (optimizer_steps.adagrad_step, ["positive"], (0.1, 1e-10, 1, 0.1)),
    "rmsprop": (optimizer_steps.rmsprop_step, ["positive", None, None], (0.1, 0.9, 1e-8, 0, 1, 0.1)),
    "rmsprop with momentum": (optimizer_steps.rmsprop_step, ["positive", "any", None], (0.1, 0.9, 1e-8, 0.9, -1, 0.0)),
    "rmsprop, centered": (optimizer_steps.rmsprop_step, ["large", None, "any"], (0.1, 0.9, 1e-8, 0, 1, 0.0)),
    "adadelta": (optimizer_steps.adadelta_step, ["positive", "positive"], (1.0, 0.9, 1e-6, 1, 0.1)),
    "asgd": (optimizer_steps.asgd_step, ["any"], (0.1, 0.99, 0.25, 1, 0.1)),
    "asgd at first": (optimizer_steps.asgd_step, ["any"], (0.1, 0.99, 1, -1, 0.0)),
    "rprop": (optimizer_steps.rprop_step, ["any", "positive"], (0.5, 1.2, 1e-2, 1.0, 1)),
}
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1e-40, 1e15, -1e18]


def arrays_of(name: str, size: int, kind) -> list:
    """Return a parameter, its gradient and its state."""
    rng = np.random.default_rng(size)
    found = [rng.normal(size=size), rng.normal(size=size)]
    for what in STEPS[name][1]:
        shift = {"any": 0, "positive": 0.1, "large": 50}.get(what, 0)
        values = rng.normal(size=size)
        found.append(None if what is None else values if what == "any" else np.abs(values) + shift)
    return [None if values is None else values.astype(kind) for values in found]


def both(name: str, arrays: list) -> tuple[list, list]:
    """Return the arrays after the native step, and after the reference's."""
    step, _, options = STEPS[name]
    after = []
    for run in (step, step.__wrapped__):
        own = [None if values is None else values.copy() for values in arrays]
        with np.errstate(all="ignore"):
            assert run(*own, *options) is None
        after.append(own)
    return after[0], after[1]


@together(kind=KINDS, size=SIZES)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_its_reference(level, name, size, kind):
    for found, expected in zip(*both(name, arrays_of(name, size, kind))):
        if expected is not None:
            scale = 32 * np.finfo(kind).eps
            np.testing.assert_allclose(found, expected, rtol=scale, atol=scale)


@together(kind=KINDS, place=[0, 1])
@pytest.mark.parametrize("name", STEPS)
def test_what_is_not_finite_or_tiny_goes_where_it_goes_in_the_reference(level, name, place, kind):
    arrays = arrays_of(name, 37, kind)
    with np.errstate(all="ignore"):
        arrays[place][: len(ODD)] = np.array(ODD).astype(kind)
    for found, expected in zip(*both(name, arrays)):
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=64 * np.finfo(kind).eps, atol=64 * np.finfo(kind).eps)


@pytest.mark.parametrize("name", STEPS)
def test_state_that_a_step_needs_cannot_be_none(name):
    _, kept, options = STEPS[name]
    needed = [place for place, what in enumerate(kept) if what is not None]
    optional = {"sgd": 0, "adam": 2, "rmsprop": 1}.get(name.split()[0].rstrip(","), len(kept))
    for place in (place for place in needed if place < optional):
        arrays = [np.ones(20) for _ in range(2 + len(kept))]
        arrays[2 + place] = None
        with pytest.raises((TypeError, AttributeError)):
            STEPS[name][0](*arrays, *options)


@pytest.mark.parametrize("name", STEPS)
def test_the_gradient_is_left_alone(level, name):
    arrays = arrays_of(name, 1000, np.float32)
    found, _ = both(name, arrays)
    assert found[1].tobytes() == arrays[1].tobytes()


@pytest.mark.parametrize("name", ["sgd with momentum", "adam"])
def test_strided_arrays_are_stepped_too(level, name):
    step, _, options = STEPS[name]
    whole = arrays_of(name, 64, np.float32)
    strided = [None if values is None else values.copy()[::2] for values in whole]
    dense = [None if values is None else values[::2].copy() for values in whole]
    step(*strided, *options)
    step(*dense, *options)
    np.testing.assert_allclose(strided[0], dense[0], rtol=1e-6)


def test_arrays_that_overlap_are_read_before_they_are_written(level):
    memory = np.arange(41, dtype=np.float64)
    optimizer_steps.sgd_step(memory[1:], memory[:-1], None, 1.0, 0.0, 1, False, 1, 0.0)
    assert memory.tolist() == [0.0] + [1.0] * 40


@together(kind=KINDS, size=SIZES)
def test_sums_of_squares_and_scaling_are_their_references(level, size, kind):
    x = np.random.default_rng(0).normal(size=size).astype(kind)
    found = optimizer_steps.sum_of_squares(x)
    assert isinstance(found, float)
    assert found == pytest.approx(optimizer_steps.sum_of_squares.__wrapped__(x), rel=8 * float(np.finfo(kind).eps))
    scaled, expected = x.copy(), x * kind(0.3)
    optimizer_steps.scale_in_place(scaled, 0.3)
    assert scaled.tobytes() == expected.tobytes()


def test_the_number_of_threads_changes_no_digit(level):
    x = np.random.default_rng(0).normal(size=300_001).astype(np.float32)
    before, found = compiled.threads(), []
    for threads in (1, 2, 5):
        compiled.set_threads(threads)
        arrays = arrays_of("adam", 70_001, np.float32)
        STEPS["adam"][0](*arrays, *STEPS["adam"][2])
        found.append((optimizer_steps.sum_of_squares(x), arrays[0].tobytes()))
    compiled.set_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("limit", [0.1, 1e9])
@pytest.mark.parametrize("dtypes", [("float32",), ("float64",), ("float32", "float64"), ("float16",)])
def test_clipping_by_the_norm_is_pytorchs(dtypes, limit):
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=(50, 7)), rng.normal(size=()), rng.normal(size=9000)]
    sides = []
    for module in (backlight, torch):
        params = [
            module.zeros(each.shape, dtype=getattr(module, dtypes[i % len(dtypes)]), requires_grad=True)
            for i, each in enumerate(gradients)
        ]
        for param, gradient in zip(params, gradients):
            param.grad = module.tensor(gradient).to(param.dtype)
        versions = [param.grad._version for param in params]
        total = module.nn.utils.clip_grad_norm_(params, limit)
        assert [param.grad._version for param in params] == [version + 1 for version in versions]
        sides.append((params, total))
    (ours, total), (theirs, expected) = sides
    assert str(total.dtype) == str(expected.dtype)
    tolerance = 2e-3 if "float16" in dtypes else 2e-6
    assert total.item() == pytest.approx(expected.item(), rel=tolerance)
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.grad.double().numpy(), other.grad.double().numpy(), rtol=2 * tolerance)
