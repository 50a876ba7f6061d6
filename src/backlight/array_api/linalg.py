"""The standard's linear algebra."""

from backlight import linalg
from backlight.array_api.manipulation import matrix_transpose
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.linalg import cholesky, det, inv, matrix_power, slogdet, solve
from backlight.ops.indexing import slicing
from backlight.ops.linalg import contractions
from backlight.ops.linalg.matrix_products import matmul

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"]
__all__ += ["matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"]
__all__ += ["trace", "vecdot", "vector_norm"]


def cross(x1: TensorState, x2: TensorState, /, *, axis: int = -1):
    """Return the cross product of vectors of three elements."""
    return linalg.cross(x1, x2, dim=axis)


def diagonal(x: TensorState, /, *, offset: int = 0):
    """Return a diagonal of each matrix."""
    return slicing.diagonal(x, offset, -2, -1)


def matrix_norm(x: TensorState, /, *, keepdims: bool = False, ord: float | str = "fro"):
    """Return the norm of each matrix."""
    return linalg.matrix_norm(x, ord, keepdim=keepdims)


def outer(x1: TensorState, x2: TensorState, /):
    """Return the outer product of two vectors."""
    return contractions.outer(x1, x2)


def tensordot(x1: TensorState, x2: TensorState, /, *, axes: int | tuple = 2):
    """Contract over some axes."""
    return contractions.tensordot(x1, x2, axes if isinstance(axes, int) else tuple(list(each) for each in axes))


def trace(x: TensorState, /, *, offset: int = 0, dtype: dtype | None = None):
    """Sum a diagonal of each matrix."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2):
    """Return the norm of vectors, or of all elements."""
    return linalg.vector_norm(x, ord, axis, keepdims)


def vecdot(x1: TensorState, x2: TensorState, /, *, axis: int = -1):
    """Return the dot products of vectors along an axis."""
    return linalg.vecdot(x1, x2, dim=axis)


def eigh(x: TensorState, /):
    """Return the eigenvalues and eigenvectors of symmetric matrices."""
    return linalg.eigh(x)


def eigvalsh(x: TensorState, /):
    """Return the eigenvalues of symmetric matrices."""
    return linalg.eigvalsh(x)


def matrix_rank(x: TensorState, /, *, rtol: float | TensorState | None = None):
    """Count the singular values of matrices above `rtol` times the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def pinv(x: TensorState, /, *, rtol: float | TensorState | None = None):
    """Return the pseudo-inverse of matrices, without singular values below `rtol` times the largest."""
    return linalg.pinv(x, rtol=rtol)


def qr(x: TensorState, /, *, mode: str = "reduced"):
    """Return orthogonal and triangular factors of matrices."""
    return linalg.qr(x, mode)


def svd(x: TensorState, /, *, full_matrices: bool = True):
    """Return the singular vectors and values of matrices."""
    return linalg.svd(x, full_matrices)


def svdvals(x: TensorState, /):
    """Return the singular values of matrices."""
    return linalg.svdvals(x)
