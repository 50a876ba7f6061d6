"""Native steps of recurrent layers are their NumPy references, at every level, in both types and any size."""

import numpy as np
import pytest

from backlight.kernels.native import compiled
from backlight.kernels.nn import recurrence

KINDS = (np.float32, np.float64)
SIZES = [(0, 4), (1, 1), (3, 5), (2, 16), (5, 37), (70, 128)]  # rows, numbers in a gate

# step: gates in a row of each array
STEPS = {
    "lstm_step": (4, 4, 1, 1, 1),
    "lstm_step_gradient": (1, 1, 4, 1, 1, 4),
    "gru_step": (3, 3, 1, 1, 1),
    "gru_step_gradient": (1, 3, 1, 1, 3, 3, 1),
}


def both(name: str, arrays: list) -> tuple[list, list]:
    """Return the arrays after the native step, and after the reference's."""
    after = []
    for run in (getattr(recurrence, name), getattr(recurrence, name).__wrapped__):
        own = [values.copy() for values in arrays]
        with np.errstate(all="ignore"):
            assert run(*own) is None
        after.append(own)
    return after[0], after[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_its_reference(level, name, size, kind):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(size[0], size[1] * gates), scale=3).astype(kind) for gates in STEPS[name]]
    for found, expected in zip(*both(name, arrays)):
        most = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(found, expected, rtol=32 * np.finfo(kind).eps, atol=32 * np.finfo(kind).eps * most)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["lstm_step", "gru_step"])
def test_what_is_not_finite_or_huge_goes_where_it_goes_in_the_reference(level, name, kind):
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -1e30, 90, -90, 800, -800]
    arrays = [np.zeros((2, gates * len(odd)), kind) for gates in STEPS[name]]
    arrays[0][...] = np.tile(odd, STEPS[name][0])
    arrays[2][...] = 0.5
    for found, expected in zip(*both(name, arrays)):
        np.testing.assert_allclose(found, expected, rtol=32 * np.finfo(kind).eps, atol=32 * np.finfo(kind).eps)


def test_the_number_of_threads_changes_no_digit(level):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(90, 300 * gates)).astype(np.float32) for gates in STEPS["lstm_step"]]
    before, found = compiled.threads(), []
    for threads in (1, 2, 5):
        compiled.set_threads(threads)
        found.append([values.tobytes() for values in both("lstm_step", arrays)[0]])
    compiled.set_threads(before)
    assert found[0] == found[1] == found[2]
