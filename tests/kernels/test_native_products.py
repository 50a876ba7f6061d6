"""Native products agree with float64's, at every level, in both types, for any size and any strides."""

import numpy as np
import pytest
from for_each import together
from test_native import KINDS

import backlight
from backlight.kernels.linalg import matrix_products
from backlight.kernels.native import compiled

SIZES = [
    (1, 1, 1),
    (2, 3, 4),
    (5, 17, 1),
    (14, 32, 7),
    (15, 33, 16),
    (16, 16, 16),
    (64, 10, 300),
    (13, 100, 513),
    (200, 50, 600),
    (170, 130, 90),
    (300, 260, 1100),
]


def natively(name):
    """Return the compiled kernel, whether or not it is the one that this machine chooses; else the reference."""
    chosen = getattr(matrix_products, name)
    return chosen if compiled is None else compiled.kernel(getattr(chosen, "__wrapped__", chosen))


def drawn(shape, kind, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


class Exact:
    """A product, and how far a sum of it in any order may be from it (Higham); float64 is its own truth."""

    def __init__(self, a, b, extra=0):
        wide = np.float64
        self.kind, self.value = a.dtype, a.astype(wide) @ b.astype(wide) + extra
        size = np.abs(a).astype(wide) @ np.abs(b).astype(wide) + np.abs(extra)
        self.bound = size * np.finfo(a.dtype).eps * (2 * np.sqrt(a.shape[-1]) + 4)

    def check(self, found):
        assert found.dtype == self.kind and found.shape == self.value.shape and found.flags.c_contiguous
        assert np.all(np.abs(found - self.value) <= self.bound)


def agree(found, a, b, extra=0):
    Exact(a, b, extra).check(found)


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "every third column": lambda x: np.repeat(x, 3, -1)[..., ::3],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "part of a wider one": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
}


@together(kind=KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_matmul_agrees_with_the_exact_product_in_every_layout(level, sizes, kind):
    m, n, k = sizes
    a, b = drawn((m, k), kind), drawn((k, n), kind, 1)
    exact = Exact(a, b)
    for left in LAYOUTS.values():
        for right in LAYOUTS.values():
            exact.check(natively("matmul")(left(a), right(b)))


@together(kind=KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_linear_adds_its_bias_once(level, sizes, kind):
    m, n, k = sizes
    x, weight, bias = drawn((m, k), kind), drawn((n, k), kind, 1), drawn(n, kind, 2)
    exact = Exact(x, weight.T, bias)
    for layout in LAYOUTS.values():
        exact.check(natively("linear")(layout(x), weight, bias))
    agree(natively("linear")(x, weight, None), x, weight.T)


def test_linear_takes_all_dims_but_the_last_as_rows(level):
    x, weight, bias = drawn((3, 4, 5), np.float32), drawn((6, 5), np.float32, 1), drawn(6, np.float32, 2)
    agree(natively("linear")(x, weight, bias), x.reshape(12, 5), weight.T, bias)
    agree(natively("linear")(x[0, 0], weight, bias), x[0, 0][None], weight.T, bias)
    agree(natively("linear")(x[:, ::2], weight, bias), x[:, ::2].reshape(6, 5), weight.T, bias)


@together(kind=KINDS)
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 2, 4, 5), (3, 2, 5, 6)), ((7, 4, 5), (5, 6)), ((1, 4, 5), (7, 5, 3)), ((2, 1, 4, 5), (3, 5, 6)),
     ((4, 5), (3, 5, 2)), ((40, 30, 20), (40, 20, 33)), ((2, 200, 300), (2, 300, 180)), ((0, 2, 3), (0, 3, 4))],
)  # fmt: skip
def test_stacks_broadcast(level, left, right, kind):
    a, b = drawn(left, kind), drawn(right, kind, 1)
    agree(natively("matmul")(a, b), a, b)
    turned = natively("matmul")(a, np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2))
    agree(turned, a, b)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_products_are_empty_or_zero(level, sizes):
    m, n, k = sizes
    found = natively("matmul")(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert found.shape == (m, n) and not found.any()
    bias = drawn(n, np.float32)
    np.testing.assert_array_equal(
        natively("linear")(np.ones((m, k), np.float32), np.ones((n, k), np.float32), bias), np.full((m, n), k) + bias
    )


@together(kind=KINDS)
def test_nan_and_infinity_go_where_they_belong(level, kind):
    a, b = drawn((20, 37), kind), drawn((37, 50), kind, 1)
    a[3, 5], a[7, 0], b[2, 33] = np.nan, np.inf, -np.inf
    for right in LAYOUTS.values():
        found = natively("matmul")(a, right(b))
        with np.errstate(invalid="ignore"):
            expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


def test_the_number_of_threads_changes_no_bit(level):
    before = compiled.threads()
    found = []
    for count in (1, 2, 5):
        compiled.set_threads(count)
        a, b = drawn((300, 700), np.float32), drawn((700, 500), np.float32, 1)
        stack = drawn((30, 40, 64), np.float32), drawn((30, 64, 50), np.float32, 1)
        found.append([natively("matmul")(a, b), natively("matmul")(a, np.asfortranarray(b)), natively("matmul")(*stack),
                      natively("column_sums")(a)])  # fmt: skip
    compiled.set_threads(before)
    for other in found[1:]:
        for one, two in zip(found[0], other):
            np.testing.assert_array_equal(one, two)


@together(kind=KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (64, 16), (65, 17), (1000, 10), (700, 333), (0, 4), (4, 0)])
def test_column_sums_agree(level, shape, kind):
    x = drawn(shape, kind)
    exact = x.astype(np.longdouble).sum(0)
    found = natively("column_sums")(x)
    assert found.dtype == kind
    assert np.all(np.abs(found - exact) <= np.abs(x).sum(0) * np.finfo(kind).eps * 16)


@pytest.mark.parametrize(
    ("a", "b"),
    [(np.ones((2, 3), np.float32), np.ones((3, 4))), (np.ones((2, 3), int), np.ones((3, 4), int)),
     (np.ones(3, np.float32), np.ones((3, 4), np.float32)),
     (np.ones((2, 3), ">f4"), np.ones((3, 4), ">f4"))],
)  # fmt: skip
def test_what_the_kernel_declines_numpy_multiplies(a, b):
    np.testing.assert_array_equal(natively("matmul")(a, b), a @ b)


def test_shapes_that_do_not_fit_are_numpys_error():
    with pytest.raises(ValueError, match="not aligned"):
        natively("matmul")(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))


def test_one_setting_reaches_the_kernels_and_comes_back():
    before = backlight.get_num_threads()
    try:
        backlight.set_num_threads(3)
        assert backlight.get_num_threads() == 3 and (compiled is None or compiled.threads() == 3)
        backlight.set_num_interop_threads(2)
        assert backlight.get_num_interop_threads() == 2
    finally:
        backlight.set_num_threads(before)


@pytest.mark.parametrize("function", [backlight.set_num_threads, backlight.set_num_interop_threads])
def test_threads_are_a_positive_int(function):
    with pytest.raises(RuntimeError, match=f"{function.__name__} expects a positive integer"):
        function(0)
    with pytest.raises(RuntimeError, match=f"{function.__name__} expects an int, but got float"):
        function(1.5)


@together(kind=[np.float32, np.float64])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (2, 700), (5, 1031), (384, 40), (1536, 384), (33, 2000)])
def test_a_matrix_times_a_vector_is_its_rows_times_it(m, k, kind):
    rng = np.random.default_rng(0)
    a, v, bias = (
        rng.normal(size=(m, k)).astype(kind),
        rng.normal(size=(k, 5)).astype(kind),
        rng.normal(size=m).astype(kind),
    )
    near = {"rtol": 0, "atol": 4 * k * np.finfo(kind).eps}
    expected = a.astype(np.float64) @ v[:, 2:3]
    np.testing.assert_allclose(matrix_products.matmul(a, v[:, 2:3]), expected, **near)
    np.testing.assert_allclose(matrix_products.matmul(np.asfortranarray(a), v[:, 2:3].copy()), expected, **near)
    np.testing.assert_allclose(matrix_products.matmul(v[:, 2:3].T, a.T), expected.T, **near)
    np.testing.assert_allclose(matrix_products.linear(v[:, 2:3].T.copy(), a, bias), expected.T + bias, **near)
