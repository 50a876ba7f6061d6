"""Native slices, added and scanned along a dim, are their NumPy references at every level, in both types."""

import numpy as np
import pytest
from for_each import together
from test_native import KINDS

from backlight.kernels.reduction import slices

CASES = [
    ((7,), 0),
    ((5, 33), 0),
    ((5, 33), 1),
    ((3, 8, 40), 1),
    ((70, 50, 9), 2),
    ((0, 4), 1),
    ((4, 3, 0), 1),
    ((1, 1), 0),
]
INDICES = {
    "reflected": lambda size: np.abs(np.arange(-size + 1, size)),
    "in disorder": lambda size: np.random.default_rng(size).integers(0, size, 3 * size + 1),
    "none": lambda size: np.zeros(0, np.int64),
}


def numbers(shape, kind):
    return np.random.default_rng(1).normal(size=shape).astype(kind)


@together(named=INDICES, kind=KINDS)
@pytest.mark.parametrize(("shape", "dim"), CASES, ids=str)
def test_slices_are_taken_and_added_as_by_the_reference(level, shape, dim, kind, named):
    x, index = numbers(shape, kind), INDICES[named](shape[dim])
    taken = slices.slices_taken(x, index, dim)
    np.testing.assert_array_equal(taken, slices.slices_taken.__wrapped__(x, index, dim))
    found, expected = x.copy(), x.copy()
    assert slices.add_slices(found, taken, index, dim) is None
    slices.add_slices.__wrapped__(expected, taken, index, dim)
    np.testing.assert_array_equal(found, expected)


@together(reverse=[False, True], kind=KINDS)
@pytest.mark.parametrize(("shape", "dim"), CASES, ids=str)
@pytest.mark.parametrize("scan", [slices.running_sum, slices.running_product])
def test_scans_are_those_of_the_reference(level, scan, shape, dim, kind, reverse):
    x = numbers(shape, kind)
    x.reshape(-1)[3::17] = np.nan
    found, expected = scan(x, dim, reverse), scan.__wrapped__(x, dim, reverse)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@together(largest=[False, True], kind=KINDS)
@pytest.mark.parametrize(("shape", "dim"), CASES, ids=str)
def test_running_extremes_and_their_places_are_those_of_the_reference(level, shape, dim, kind, largest):
    x = np.round(numbers(shape, kind))
    x.reshape(-1)[20::17] = np.nan
    found, expected = slices.running_extreme(x, dim, largest), slices.running_extreme.__wrapped__(x, dim, largest)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@together(kind=KINDS)
@pytest.mark.parametrize(("shape", "dim"), CASES, ids=str)
def test_slices_are_turned_and_triangles_kept_as_by_the_reference(level, shape, dim, kind):
    x = numbers(shape, kind)
    np.testing.assert_array_equal(slices.slices_turned(x, dim), slices.slices_turned.__wrapped__(x, dim))
    for upper in (False, True):
        for offset in (0, 2, -3, 100, -100) if len(shape) > 1 else ():
            found, expected = slices.triangle_kept(x, offset, upper), slices.triangle_kept.__wrapped__(x, offset, upper)
            np.testing.assert_array_equal(found, expected)


@together(kind=KINDS)
def test_what_lies_in_strides_or_out_of_range_goes_to_the_reference(level, kind):
    x, index = numbers((4, 6), kind), np.array([1, 1, 3])
    np.testing.assert_array_equal(slices.slices_taken(x.T, index, 1), x.T[:, index])
    turned, plain = np.zeros((6, 4), kind).T, np.zeros((4, 6), kind)
    slices.add_slices(turned, x[:3], index, 0)
    slices.add_slices(plain, x[:3], index, 0)
    np.testing.assert_array_equal(turned, plain)
    with pytest.raises(IndexError):
        slices.slices_taken(x, np.array([4]), 0)
    with pytest.raises(IndexError):
        slices.add_slices(plain, x[:1], np.array([4]), 0)
