"""Native sums, products and sums over dims: the first bit for bit NumPy's, the last at least as exact."""

import math

import numpy as np
import pytest
from test_native import KINDS

from backlight.kernels.elementwise import binary
from backlight.kernels.native import compiled

TWO = [binary.plus, binary.minus, binary.times, binary.over]
SAME = [(1,), (3,), (0,), (4, 0), (17,), (5, 67), (1025,), (2, 3, 70), (700, 130)]
STRETCHED = [
    ((5, 67), (67,)),
    ((5, 67), (1, 67)),
    ((5, 67), (5, 1)),
    ((300, 1000), (1000,)),
    ((3000, 41), (3000, 1)),
    ((2, 3, 4, 5), (3, 4, 5)),
    ((2, 3, 4, 5), (1, 1, 4, 5)),
    ((2, 3, 4, 5), (2, 3, 1, 1)),
    ((2, 3, 4, 5), (1, 3, 1, 1)),
    ((2, 3), (1, 1)),
    ((2, 3), (1,)),
    ((1, 3), (2, 1)),
    ((3, 1), (3,)),
    ((4, 0), (0,)),
    ((4, 0), (4, 1)),
    ((6, 2, 1), (2, 1)),
    ((2, 3, 1), (1, 3, 1)),
    ((1,), (2, 1, 1)),
]


def same(found, expected):
    assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def numbers(shape, kind, seed=0):
    found = np.asarray(np.random.default_rng(seed).normal(size=shape)).astype(kind)
    if found.size > 4:
        found.reshape(-1)[:4] = [math.inf, -0.0, 0.0, np.finfo(kind).tiny / 4]
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", TWO, ids=lambda function: function.__name__)
def test_operators_are_numpy_s(level, operator, kind):
    pairs = [(shape, shape) for shape in SAME] + STRETCHED + [((), ()), ((5, 40), ()), ((70000,), ()), ((3, 4), (3, 4))]
    for first, second in pairs:
        a, b = numbers(first, kind, 1), numbers(second, kind, 2)
        for x, y in ((a, b), (b, a), (a[()], b[()]), (b[()], a), (a[..., ::-1] if a.ndim else a, b)):
            found, expected = operator(x, y), operator.__wrapped__(x, y)
            if not np.isnan(expected).any():
                same(found, expected)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(compiled is None, reason="native kernels are not in use")
@pytest.mark.parametrize("operator", TWO, ids=lambda function: function.__name__)
def test_other_types_are_numpy_s(operator):
    small = np.arange(1, 7, dtype=np.int32)
    same(operator(small, small), operator.__wrapped__(small, small))
    wide, narrow = small.astype(np.float64), small.astype(np.float32)
    same(operator(wide, narrow), operator.__wrapped__(wide, narrow))
    same(
        operator(narrow.astype(np.float16), np.float16(2)),
        operator.__wrapped__(narrow.astype(np.float16), np.float16(2)),
    )
    same(operator(narrow, 2.5), operator.__wrapped__(narrow, 2.5))


def test_shapes_that_do_not_broadcast_are_numpy_s_error():
    with pytest.raises(ValueError, match="could not be broadcast"):
        binary.plus(np.ones((3, 2), np.float32), np.ones(3, np.float32))


SUMS = [
    ((7,), None),
    ((7,), (0,)),
    ((300, 257), None),
    ((300, 257), (0,)),
    ((300, 257), (1,)),
    ((300, 257), (-1,)),
    ((300, 257), (0, 1)),
    ((70001, 3), (0,)),
    ((5, 6, 7), (0, 1)),
    ((5, 6, 7), (1, 2)),
    ((5, 6, 7), (1,)),
    ((5, 6, 7), (0, 2)),
    ((5, 6, 7), ()),
    ((1000000,), None),
    ((2, 2000), (0,)),
    ((2000, 2), (1,)),
    ((1, 9), (0,)),
    ((9, 1), (1,)),
    ((0, 4), (0,)),
    ((4, 0), None),
    ((), None),
]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "dims"), SUMS, ids=str)
def test_sums_are_the_exact_sums_to_a_few_units(level, shape, dims, kind, keepdim):
    x = np.asarray(np.random.default_rng(0).normal(size=shape)).astype(kind)
    found, expected = binary.summed(x, dims, keepdim), binary.summed.__wrapped__(x, dims, keepdim)
    assert type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
    wide = x.astype(np.longdouble)
    exact, size = np.add.reduce(wide, dims, keepdims=keepdim), np.add.reduce(np.abs(wide), dims, keepdims=keepdim)
    assert np.all(np.abs(found - exact) <= np.maximum(2, 0.04 * x.size**0.25) * np.finfo(kind).eps * size)
    error, numpys = np.abs(found - exact).max(initial=0), np.abs(expected - exact).max(initial=0)
    assert error <= 1.5 * numpys + 2 * np.finfo(kind).eps * np.abs(exact).max(initial=0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_what_is_not_finite(level, kind):
    for bad in ([math.inf], [-math.inf], [math.nan], [math.inf, -math.inf]):
        x = np.ones((400, 300), kind)
        x[7, 3 : 3 + len(bad)] = bad
        for dims in (None, (0,), (1,)):
            np.testing.assert_array_equal(binary.summed(x, dims, False), binary.summed.__wrapped__(x, dims, False))


def test_sums_do_not_depend_on_threads(level):
    x, before = np.random.default_rng(0).normal(size=(3001, 513)).astype(np.float32), compiled.threads()
    for dims in (None, (0,), (1,)):
        found = []
        for count in (1, 2, 3):
            compiled.set_threads(count)
            found.append(np.asarray(binary.summed(x, dims, False)).tobytes())
        compiled.set_threads(before)
        assert len(set(found)) == 1
