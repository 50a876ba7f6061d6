"""Linear equations with triangular matrices: substitution row by row, by halves where they are large."""

import numpy as np

BY_ROWS = 16  # up to this size, row after row; above it, two halves and a product


def solve_triangular(a, b, *, upper: bool, unit: bool = False) -> np.ndarray:
    """Return x with a · x = b, where only one triangle of `a` is read.

    A zero on the diagonal gives infinities and NaN, as in LAPACK.

    Shapes: a (…, n, n), b (…, n, k) -> (…, n, k); batch dims broadcast

    Args:
        upper: read the upper triangle, else the lower one.
        unit: take the diagonal to be 1.
    """
    if upper:
        return solve_triangular(a[..., ::-1, ::-1], b[..., ::-1, :], upper=False, unit=unit)[..., ::-1, :]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])), order="C")
    with np.errstate(all="ignore"):
        _substitute(a, x, unit)
    return x


def _substitute(a, x, unit: bool) -> None:
    """Overwrite x, which holds b, by the solution for a lower triangle."""
    size = a.shape[-1]
    if size > BY_ROWS:
        half = size // 2
        _substitute(a[..., :half, :half], x[..., :half, :], unit)
        x[..., half:, :] -= a[..., half:, :half] @ x[..., :half, :]
        _substitute(a[..., half:, half:], x[..., half:, :], unit)
        return
    for row in range(size):
        if row:
            x[..., row : row + 1, :] -= a[..., row : row + 1, :row] @ x[..., :row, :]
        if not unit:
            x[..., row, :] /= a[..., row, row, None]
