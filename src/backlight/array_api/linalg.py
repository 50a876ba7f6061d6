"""The standard's linear algebra."""

from backlight import linalg
from backlight.array_api.moving import matrix_transpose
from backlight.linalg import cholesky, det, inv, slogdet, solve
from backlight.ops import contractions, slicing
from backlight.ops.products import matmul

__all__ = ["cholesky", "cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_transpose", "outer"]
__all__ += ["slogdet", "solve", "tensordot", "trace", "vecdot", "vector_norm"]


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
    """Multiply each element of one vector with each of the other."""
    return contractions.outer(x1, x2)


def tensordot(x1, x2, /, *, axes=2):
    """Multiply and add up over some axes."""
    return contractions.tensordot(x1, x2, axes if isinstance(axes, int) else tuple(list(each) for each in axes))


def trace(x, /, *, offset: int = 0, dtype=None):
    """Add up a diagonal of each matrix."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2):
    """Return the norm of vectors, or of all elements."""
    return linalg.vector_norm(x, ord, axis, keepdims)


def vecdot(x1, x2, /, *, axis: int = -1):
    """Multiply vectors and add up along an axis."""
    return linalg.vecdot(x1, x2, dim=axis)
