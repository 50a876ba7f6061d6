"""Products on Intel's tile unit (csrc/kernels/gemm_amx.c): as exact as those of vectors, every number in its place."""

import itertools

import numpy as np
import pytest

from backlight.kernels.linalg.matrix_products import linear, matmul
from backlight.kernels.native import compiled

pytestmark = pytest.mark.skipif(
    compiled is None or compiled.level() != "amx", reason="the kernels of this machine's level use no tile unit"
)
SIZES = [(128, 128, 128), (90, 470, 95), (130, 129, 800), (257, 300, 1540)]
STRIDES = list(itertools.product(("rows", "columns", "steps"), repeat=2))


def lying(array: np.ndarray, how: str) -> np.ndarray:
    """Return the same matrix with its rows side by side, its columns, or neither."""
    if how == "columns":
        return np.asfortranarray(array)
    return array if how == "rows" else np.repeat(array, 2, axis=1)[:, ::2]


def drawn(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


def by_vectors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    compiled.use_level("v4")
    try:
        return matmul(a, b)
    finally:
        compiled.use_level("amx")


@pytest.mark.parametrize("of_a, of_b", STRIDES)
@pytest.mark.parametrize("size", SIZES)
def test_errors_are_no_larger_than_those_of_vectors(size, of_a, of_b):
    a, b = drawn(*size)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found, vectors = matmul(lying(a, of_a), lying(b, of_b)), by_vectors(a, b)
    assert not np.array_equal(found, vectors)  # it was the tile unit
    assert np.linalg.norm(found - exact) <= 1.2 * np.linalg.norm(vectors - exact)


@pytest.mark.parametrize("scale", [2.0**-90, 2.0**-40, 2.0**60])
def test_errors_are_relative_to_the_numbers(scale):
    a, b = drawn(128, 160, 256)
    a *= np.float32(scale)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(matmul(a, b) - exact) <= 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3.4e38, 2.0**-120, 1e-40])
@pytest.mark.parametrize("side", [0, 1])
def test_numbers_that_have_no_three_parts_are_left_to_vectors(special, side):
    operands = drawn(160, 200, 70)
    operands[side][40, 20] = special
    np.testing.assert_array_equal(matmul(*operands), by_vectors(*operands))


def test_zeros_and_their_signs_are_no_reason_to_leave_it():
    a, b = drawn(128, 128, 128)
    a[:, ::2], b[3] = 0.0, -0.0
    assert not np.array_equal(matmul(a, b), by_vectors(a, b))


@pytest.mark.parametrize("rows", [128, 300])
def test_the_bias_is_added_once(rows):
    a, b = drawn(rows, 170, 1700)
    bias = np.arange(170, dtype=np.float32) * 1000
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(linear(a, np.ascontiguousarray(b.T), bias), exact, rtol=1e-5, atol=1e-3)


def test_a_row_does_not_depend_on_the_rows_beside_it():
    a, b = drawn(200, 384, 384)
    np.testing.assert_array_equal(matmul(a, b)[64:164], matmul(a[64:164], b))
