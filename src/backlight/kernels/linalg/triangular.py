"""Linear equations with triangular matrices: by halves where they are large, so that most of the work is products."""

import numpy as np

from backlight.kernels.state_blocks import silent_floats

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
