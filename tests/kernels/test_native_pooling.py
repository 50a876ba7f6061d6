"""Native pooling is its NumPy reference, at every level, in both types, for any windows, NaN and infinities too."""

import numpy as np
import pytest
from for_each import together
from test_native import KINDS

from backlight.kernels.native import compiled
from backlight.kernels.nn import pooling
from backlight.ops.nn.pooling_sizes import Windows

# shape, kernel, stride, padding, dilation, ceil_mode
CASES = [
    ((1, 1, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 3, 9, 35), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((2, 3, 9, 35), (3, 2), (1, 1), (1, 1), (1, 1), True),
    ((3, 5, 28, 29), (3, 4), (3, 5), (1, 2), (2, 1), True),
    ((1, 2, 40), (5,), (2,), (2,), (1,), False),
    ((2, 1, 6, 7, 20), (2, 3, 2), (2, 1, 3), (1, 0, 1), (1, 2, 1), True),
    ((0, 3, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 1, 5, 70), (2, 2), (1, 17), (0, 0), (1, 1), False),  # a stride too long for the native kernel
    ((40, 20, 12, 12), (3, 3), (2, 2), (1, 1), (1, 1), False),  # enough for threads
]
BINS = [
    ((1, 1, 8, 8), (3, 3)),
    ((2, 3, 7, 40), (7, 6)),
    ((2, 2, 5), (8,)),
    ((1, 2, 4, 5, 9), (2, 3, 4)),
    ((30, 40, 9, 9), (4, 4)),
]


def numbers(shape, kind, odd: bool):
    """Return numbers; `odd` ones repeat, and are NaN or infinite here and there."""
    x = np.random.default_rng(len(shape)).normal(size=shape).astype(kind)
    if odd:
        x = np.round(x)
        flat = x.reshape(-1)
        flat[::7], flat[3::11], flat[5::13] = np.nan, np.inf, -np.inf
        x[-1:, -1:] = -np.inf  # no element of these windows is larger than the padding
    return x


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def near(found, expected, kind):
    """Compare sums that may have been added up in another order."""
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=32 * np.finfo(kind).eps)


@together(odd=[False, True], kind=KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_largest_of_windows_are_those_of_the_reference(level, case, kind, odd):
    shape, *options = case
    windows = Windows(*options)
    given = numbers(shape, kind, odd), windows, windows.places(shape[2:])
    same(pooling.largest_in_windows(*given), pooling.largest_in_windows.__wrapped__(*given))


@together(counted=[(True, None), (False, None), (True, 5)], kind=KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_means_of_windows_and_their_shares_are_those_of_the_reference(level, case, kind, counted):
    shape, kernel, stride, padding, _, ceil_mode = case
    windows = Windows(kernel, stride, padding, (1,) * len(kernel), ceil_mode)
    places = windows.places(shape[2:])
    given = numbers(shape, kind, False), windows, places, *counted
    means = pooling.means_in_windows(*given)
    same([means], [pooling.means_in_windows.__wrapped__(*given)])
    given = means, windows, shape[2:], *counted
    near(pooling.shared_in_windows(*given), pooling.shared_in_windows.__wrapped__(*given), kind)


@together(odd=[False, True], kind=KINDS)
@pytest.mark.parametrize("case", BINS, ids=str)
def test_the_largest_of_bins_are_those_of_the_reference(level, case, kind, odd):
    shape, places = case
    x = numbers(shape, kind, odd)
    same(pooling.largest_in_bins(x, places), pooling.largest_in_bins.__wrapped__(x, places))


@together(kind=KINDS)
@pytest.mark.parametrize("case", BINS, ids=str)
def test_means_of_bins_and_their_shares_are_those_of_the_reference(level, case, kind):
    shape, places = case
    x = numbers(shape, kind, False)
    means = pooling.means_in_bins(x, places)
    near(means, pooling.means_in_bins.__wrapped__(x, places), kind)
    near(pooling.shared_in_bins(means, shape[2:]), pooling.shared_in_bins.__wrapped__(means, shape[2:]), kind)


@together(kind=KINDS)
def test_numbers_are_added_at_their_places(level, kind):
    values, places = numbers((3, 50), kind, False), np.random.default_rng(0).integers(0, 60, (3, 50))
    same([pooling.added_at(values, places, (6, 10))], [pooling.added_at.__wrapped__(values, places, (6, 10))])
    with pytest.raises(IndexError):
        pooling.added_at(values, places + 60, (6, 10))


def test_pooling_is_the_same_at_each_level_and_number_of_threads(level):
    shape, *options = CASES[-1]
    x, windows = numbers(shape, np.float32, False), Windows(*options)
    places = windows.places(shape[2:])
    calls = [
        lambda: pooling.means_in_windows(x, windows, places, False, None),
        lambda: pooling.means_in_bins(x, (5, 5)),
        lambda: pooling.shared_in_bins(x, (30, 31)),
    ]
    before, threads = compiled.level(), compiled.threads()
    found = [call() for call in calls]
    try:
        compiled.use_level("v1")
        compiled.set_threads(1 if threads > 1 else 3)
        same(found, [call() for call in calls])
    finally:
        compiled.use_level(before)
        compiled.set_threads(threads)
