"""The standard's linear algebra."""

from backlight import linalg
from backlight.array_api.manipulation import matrix_transpose
from backlight.linalg import cholesky, det, inv, matrix_power, slogdet, solve
from backlight.ops.indexing import slicing
from backlight.ops.linalg import contractions
from backlight.ops.linalg.matrix_products import matmul

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power"]
__all__ += ["matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot"]
__all__ += ["trace", "vecdot", "vector_norm"]


def cross(x1, x2, /, *, axis: int = -1):
    """Return the cross product of vectors of three elements."""
    return linalg.cross(x1, x2, dim=axis)


def diagonal(x, /, *, offset: int = 0):
    """Return a diagonal of each matrix."""
    return slicing.diagonal(x, offset, -2, -1)


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro"):
    """Return the norm of each matrix."""
    return linalg.matrix_norm(x, ord, keepdim=keepdims)


def outer(x1, x2, /):
    """Return the outer product of two vectors."""
    return contractions.outer(x1, x2)


def tensordot(x1, x2, /, *, axes=2):
    """Contract over some axes."""
    return contractions.tensordot(x1, x2, axes if isinstance(axes, int) else tuple(list(each) for each in axes))


def trace(x, /, *, offset: int = 0, dtype=None):
    """Sum a diagonal of each matrix."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2):
    """Return the norm of vectors, or of all elements."""
    return linalg.vector_norm(x, ord, axis, keepdims)


def vecdot(x1, x2, /, *, axis: int = -1):
    """Return the dot products of vectors along an axis."""
    return linalg.vecdot(x1, x2, dim=axis)


def eigh(x, /):
    """Return the eigenvalues and eigenvectors of symmetric matrices."""
    return linalg.eigh(x)


def eigvalsh(x, /):
    """Return the eigenvalues of symmetric matrices."""
    return linalg.eigvalsh(x)


def matrix_rank(x, /, *, rtol=None):
    """Count the singular values of matrices above `rtol` times the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def pinv(x, /, *, rtol=None):
    """Return the pseudo-inverse of matrices, without singular values below `rtol` times the largest."""
    return linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode: str = "reduced"):
    """Return orthogonal and triangular factors of matrices."""
    return linalg.qr(x, mode)


def svd(x, /, *, full_matrices: bool = True):
    """Return the singular vectors and values of matrices."""
    return linalg.svd(x, full_matrices)


def svdvals(x, /):
    """Return the singular values of matrices."""
    return linalg.svdvals(x)
