"""Factors of batches of matrices: Cholesky, and LU with partial pivoting. Each says where it failed. Equations with
triangular matrices.

`info` is LAPACK's: 0, or the number (from 1) of the first diagonal element that does not do.
"""

from math import prod

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats

PANEL = 32  # columns that LU takes at a time: the rest of the matrix is then one product


def cholesky(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (L, info): L · Lᵀ = a, of which the lower triangle is read; info as int32, one number a matrix.

    Of complex numbers it is L · Lᴴ = a.

    Where a leading minor is not positive, L is what had been computed so far.
    """
    try:
        factors = np.linalg.cholesky(a)
        if np.isfinite(np.diagonal(factors, 0, -2, -1)).all():  # NumPy does not fail for NaN and infinity
            return factors, np.zeros(a.shape[:-2], np.int32)[()]
    except np.linalg.LinAlgError:
        pass
    matrices = a.reshape((prod(a.shape[:-2]), *a.shape[-2:]))
    found = [_one_cholesky(matrix) for matrix in matrices]
    factors = np.stack([factor for factor, _ in found]).reshape(a.shape)
    return factors, np.array([info for _, info in found], np.int32).reshape(a.shape[:-2])[()]


def _one_cholesky(a: np.ndarray) -> tuple[np.ndarray, int]:
    factor = np.tril(a)
    for column in range(len(a)):
        before = factor[column:, :column]
        first = before[0] if before.dtype.kind != "c" else before[0].conj()
        pivot = (factor[column, column] - before[0] @ first).real
        factor[column, column] = pivot
        if not pivot > 0:
            return factor, column + 1
        factor[column, column] = np.sqrt(pivot)
        factor[column + 1 :, column] -= before[1:] @ first
        factor[column + 1 :, column] /= factor[column, column]
        if np.isinf(pivot):
            factor[column + 1 :, column] = np.nan  # as in LAPACK: times 1 / ∞, and ∞ · 0
    return factor, 0


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (LU, pivots, info): both factors in one matrix, and with which row (from 1) each row was exchanged.

    Shapes: a (…, m, n) -> (…, m, n), (…, min(m, n)), (…)
    """
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    work = np.array(a.reshape((prod(a.shape[:-2]), rows, columns)), order="C")
    pivots = np.zeros((len(work), count), np.int32)
    with silent_floats():
        for start in range(0, count, PANEL):
            stop = min(start + PANEL, count)
            eliminate_columns(work, pivots, start, stop)
            if stop < columns:
                right = work[:, start:stop, stop:]
                right[...] = solve_triangular(work[:, start:stop, start:stop], right, upper=False, unit=True)
                work[:, stop:, stop:] -= work[:, stop:, start:stop] @ right
    info = first_zero(np.diagonal(work, 0, -2, -1))
    batch = a.shape[:-2]
    return work.reshape(a.shape), pivots.reshape((*batch, count)), info.reshape(batch)[()]


@native
def eliminate_columns(work: np.ndarray, pivots: np.ndarray, start: int, stop: int) -> None:
    """Factor the columns from `start` to `stop` in place, exchanging whole rows; note with which row each was."""
    eliminate = _eliminate_one if len(work) == 1 else _eliminate
    for column in range(start, stop):
        pivots[:, column] = eliminate(work, column, stop) + 1


def _sizes(values: np.ndarray) -> np.ndarray:
    """Return what LAPACK chooses pivots by: sizes, of complex numbers the sum of the sizes of their parts."""
    return np.abs(values) if values.dtype.kind != "c" else np.abs(values.real) + np.abs(values.imag)


def _eliminate(work: np.ndarray, column: int, stop: int) -> np.ndarray:
    """Bring the largest element of a column to the diagonal and eliminate below it, up to column `stop`."""
    each = np.arange(len(work))
    pivots = column + np.argmax(_sizes(work[:, column:, column]), axis=1)
    exchanged = work[each, pivots]
    work[each, pivots] = work[:, column]
    work[:, column] = exchanged
    divisor = work[:, column, column]
    below = work[:, column + 1 :, column]
    below /= np.where(divisor == 0, 1, divisor)[:, None]
    work[:, column + 1 :, column + 1 : stop] -= below[:, :, None] * work[:, column, None, column + 1 : stop]
    return pivots


def _eliminate_one(work: np.ndarray, column: int, stop: int) -> int:
    """The same for one matrix, where plain slices are twice as fast."""
    matrix = work[0]
    pivot = column + int(_sizes(matrix[column:, column]).argmax())
    if pivot != column:
        exchanged = matrix[pivot].copy()
        matrix[pivot] = matrix[column]
        matrix[column] = exchanged
    if matrix[column, column] != 0:
        below = matrix[column + 1 :, column]
        below /= matrix[column, column]
        matrix[column + 1 :, column + 1 : stop] -= below[:, None] * matrix[column, column + 1 : stop]
    return pivot


def first_zero(diagonals: np.ndarray) -> np.ndarray:
    """Return the number (from 1) of the first zero in each row, 0 where there is none."""
    zero = diagonals == 0
    if not diagonals.shape[-1]:
        return np.zeros(diagonals.shape[:-1], np.int32)
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32)


def permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """Return where each row of the permuted matrix came from.

    Shapes: pivots (…, k) -> (…, size)
    """
    batch = pivots.shape[:-1]
    flat = pivots.reshape((prod(batch), pivots.shape[-1]))
    order = np.tile(np.arange(size), (len(flat), 1))
    each = np.arange(len(flat))
    for place in range(flat.shape[1]):
        other = flat[:, place] - 1
        order[each, other], order[:, place] = order[:, place].copy(), order[each, other]
    return order.reshape((*batch, size))


def permutation_matrix(pivots: np.ndarray, size: int, kind: np.dtype) -> np.ndarray:
    """Return P with a = P · L · U, in a dtype.

    Shapes: pivots (…, k) -> (…, size, size)
    """
    order = permutation(pivots, size)
    return (np.arange(size)[:, None] == order[..., None, :]).astype(kind)


def solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, info) with a · x = b; a singular matrix gives infinities and NaN, and info where its U has a zero.

    Shapes: a (…, n, n), b (…, n, k) -> (…, n, k), (…); batch dims of a and b broadcast
    """
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)[()]
    except np.linalg.LinAlgError:
        factors, pivots, info = lu(a)
        return lu_solve(factors, pivots, b), info


def lu_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with P · L · U · x = b."""
    places = permutation(pivots, factors.shape[-1])[..., None]
    batch = np.broadcast_shapes(places.shape[:-2], b.shape[:-2])
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    permuted = np.take_along_axis(b, np.broadcast_to(places, (*batch, *places.shape[-2:])), -2)
    return solve_triangular(factors, solve_triangular(factors, permuted, upper=False, unit=True), upper=True)


def lu_solve_transposed(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return x with (P · L · U)ᵀ · x = b."""
    turned = factors.mT
    halfway = solve_triangular(turned, b, upper=False)
    permuted = solve_triangular(turned, halfway, upper=True, unit=True)
    places = permutation(pivots, factors.shape[-1])[..., None]
    back = np.broadcast_to(np.argsort(places, -2), (*permuted.shape[:-1], 1))
    return np.take_along_axis(permuted, back, -2)


WHOLE = 64  # up to this size a triangle is solved whole


def solve_triangular(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool = False) -> np.ndarray:
    """Return x with a · x = b, where only one triangle of `a` is read.

    A zero on the diagonal gives infinities and NaN, as in LAPACK.

    Shapes: a (…, n, n), b (…, n, k) -> (…, n, k); batch dims broadcast

    Args:
        upper: read the upper triangle, else the lower one.
        unit: take the diagonal to be 1.
    """
    if not upper:
        return solve_triangular(a[..., ::-1, ::-1], b[..., ::-1, :], upper=True, unit=unit)[..., ::-1, :]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])), order="C")
    with silent_floats():
        _substitute(a, x, unit)
    return x


def _substitute(a: np.ndarray, x: np.ndarray, unit: bool) -> None:
    """Overwrite x, which holds b, by the solution for an upper triangle."""
    size = a.shape[-1]
    if size > WHOLE:
        half = size // 2
        _substitute(a[..., half:, half:], x[..., half:, :], unit)
        x[..., :half, :] -= a[..., :half, half:] @ x[..., half:, :]
        _substitute(a[..., :half, :half], x[..., :half, :], unit)
        return
    triangle = np.where(~np.tri(size, k=-1 + unit, dtype=bool), a, np.eye(size, dtype=a.dtype) if unit else 0)
    triangle = triangle.astype(a.dtype, copy=False)
    try:
        x[...] = np.linalg.solve(triangle, x)  # LU exchanges no rows of an upper triangle: this is substitution
    except np.linalg.LinAlgError:
        # row after row from the last, where there is a zero on the diagonal
        for row in reversed(range(triangle.shape[-1])):
            x[..., row : row + 1, :] -= triangle[..., row : row + 1, row + 1 :] @ x[..., row + 1 :, :]
            x[..., row, :] /= triangle[..., row, row, None]
