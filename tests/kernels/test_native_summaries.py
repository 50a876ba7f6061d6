"""The native summary agrees with its NumPy reference: sizes around vectors and parts, odd numbers anywhere, threads."""

import numpy as np
import pytest

from backlight.kernels.native import compiled
from backlight.kernels.reduction.summaries import numbers_in_short, whole_memory

KINDS = pytest.mark.parametrize("kind", (np.float32, np.float64))
SIZES = (1, 2, 7, 16, 31, 33, 100, 4095, 4096, 4097, 70_000)


@pytest.fixture(autouse=True)
def two_threads(level):
    threads = compiled.threads()
    compiled.set_threads(2)
    yield
    compiled.set_threads(threads)


def numbers(size, kind, scale=1.0):
    return (np.random.default_rng(size).normal(size=size) * scale).astype(kind)


def agrees(x):
    found, expected = numbers_in_short(x), numbers_in_short.__wrapped__(x)
    kind = np.finfo(x.dtype)
    assert found[:2] == expected[:2]
    assert found[4:] == expected[4:]
    finite = np.abs(x[np.isfinite(x)].astype(np.float64))
    np.testing.assert_allclose(found[2], expected[2], rtol=0, atol=64 * kind.eps * finite.sum())
    np.testing.assert_allclose(found[3], expected[3], rtol=256 * kind.eps)


@KINDS
@pytest.mark.parametrize("size", SIZES)
def test_it_agrees_with_its_reference(size, kind):
    x = numbers(size, kind)
    x[:: max(size // 5, 1)] = 0
    agrees(x)


@KINDS
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_one_odd_number_is_found_wherever_it_stands(size, kind, odd):
    for place in {0, size // 2, size - 1}:
        x = numbers(size, kind)
        x[place] = odd
        agrees(x)


@KINDS
def test_squares_beyond_the_type_are_still_summed(kind):
    agrees(np.array([1e30, -1e25, 3.0] * 40, kind))


@KINDS
def test_nothing_finite_has_no_extremes(kind):
    assert numbers_in_short(np.full(50, np.nan, kind)) == (np.inf, -np.inf, 0.0, 0.0, 50, 0, 0)


def test_other_types_and_strides_go_to_the_reference():
    x = np.arange(10.0)
    assert numbers_in_short(x[::2]) == (0.0, 8.0, 20.0, 120.0, 0, 0, 1)
    assert numbers_in_short(np.arange(3)) == (0.0, 2.0, 3.0, 5.0, 0, 0, 1)


def test_the_memory_of_a_view_is_that_of_the_whole():
    whole = np.ones((4, 6))
    expected = whole.__array_interface__["data"][0], whole.nbytes
    for view in (whole, whole[1:, 2:].T, whole[2][3:], whole[:0]):
        assert whole_memory(view) == whole_memory.__wrapped__(view) == expected
