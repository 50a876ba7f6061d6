"""Functions of matrices: exponential, powers; equations between tensors of more dims; Vandermonde matrices."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.half_precision import is_half, rounded, widened
from backlight.kernels.linalg import matrix_exponential
from backlight.ops.dims import one_or_several
from backlight.ops.elementwise.copying import cast
from backlight.ops.indexing.slicing import diagonal
from backlight.ops.linalg.linear_systems import inversion, linalg_inv, linalg_solve
from backlight.ops.linalg.matrix_checks import check_float, check_square, identity, plain, zeros
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.shape.joining import cat, stack
from backlight.ops.type_promotion import INT64
from backlight.sizes import check_work

__all__ = ["matrix_exp", "matrix_power", "vander"]


@op(complex="holomorphic")
def linalg_matrix_exp(xp, input: Array):
    """Return the exponentials of square matrices, Σ Aᵏ / k!.

    Shapes: input (…, n, n) -> (…, n, n)
    """
    check_square("linalg.matrix_exp", input)
    check_float("linalg.matrix_exp", input, low_precision=True)
    return rounded(matrix_exponential.matrix_exp(widened(input)), input.dtype)


@linalg_matrix_exp.derivative("input", formula="the upper right block of exp([Aᵀ, grad; 0, Aᵀ])")
def linalg_matrix_exp_input(grad: Array, input: Array, ops):
    turned, size = input.mT, input.shape[-1]
    upper = ops.cat([turned, grad], -1)
    lower = ops.cat([zeros(tuple(input.shape), input), turned], -1)
    return ops.linalg_matrix_exp(ops.cat([upper, lower], -2))[..., :size, size:]


def matrix_exp(input: TensorState):
    """Return the exponentials of square matrices; the same as `linalg.matrix_exp`."""
    return linalg_matrix_exp(input)


def linalg_matrix_power(input: TensorState, n: int):
    """Multiply square matrices with themselves, n times; their inverses where n is negative.

    Shapes: input (…, k, k) -> (…, k, k)
    """
    if not isinstance(n, int):
        raise ArgumentError(
            f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}; roots of matrices "
            "are not in backlight"
        )
    check_square("linalg.matrix_power", input._data)
    if n == 0:
        return input.clone().copy_(identity(input.shape[-1], input))
    if n == 1:
        return input.clone()
    return positive_power(linalg_inv(input) if n < 0 else input, abs(n))


def positive_power(matrices: TensorState, n: int):
    """Return a power by squaring: about log₂(n) products."""
    if n <= 3:
        return matrices if n == 1 else matrices @ matrices if n == 2 else (matrices @ matrices) @ matrices
    found = None
    while n:
        if n % 2:
            found = matrices if found is None else found @ matrices
        n //= 2
        if n:
            matrices = matrices @ matrices
    return found


def matrix_power(input: TensorState, n: int):
    """Multiply square matrices with themselves, n times; the same as `linalg.matrix_power`."""
    return linalg_matrix_power(input, n)


@public_function
def linalg_tensorinv(input: TensorState, ind: int = 2):
    """Return the inverse of a tensor taken as a matrix: its first `ind` dims are the rows, the others the columns.

    Shapes: input (a, …, b, …) with as many elements in the first dims as in the others -> (b, …, a, …)
    """
    if ind <= 0:
        raise ShapeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, rest = input.shape[:ind], input.shape[ind:]
    if prod(first) != prod(rest):
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(rest)} != {prod(first)}"
        )
    matrix = input.reshape((prod(first), prod(rest)))
    return inversion(matrix, raising="inv").inverse.reshape((*rest, *first))


@public_function
def linalg_tensorsolve(input: TensorState, other: TensorState, dims: Sequence[int] | None = None):
    """Solve tensordot(input, X, X.ndim) = other.

    Args:
        dims: dims of `input` to move behind the others first.
    """
    if dims is not None:
        dims = one_or_several(dims)
        input = input.movedim(dims, tuple(range(input.ndim - len(dims), input.ndim)))
    shape = input.shape[other.ndim :]
    size = prod(shape)
    if size != other.numel():
        raise ShapeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {size} != {other.numel()}"
        )
    return linalg_solve(input.reshape((size, size)), other.flatten()).reshape(tuple(shape))


def linalg_vander(x: TensorState, *, N: int | None = None):
    """Return matrices with the powers 0, 1, …, N − 1 of each number in a row.

    Shapes: x (…, n) -> (…, n, N)
    """
    kind = x._data.dtype
    if kind.kind == "b" or is_half(x._data):
        raise ShapeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {big_name(kind)}\n  Convert "
            "it first (.float())"
        )
    x = x if x.ndim else x.unsqueeze(-1)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise ShapeError(f"N must be greater than 1.\n  It is how many columns there are: {count}")
    powers = x.unsqueeze(-1).expand((*x.shape, count - 1)).cumprod(-1)
    return cat([plain(np.ones((*x.shape, 1), powers._data.dtype)), powers], -1)


def linalg_diagonal(A: TensorState, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Return the diagonals of matrices, as a view."""
    return diagonal(A, offset, dim1, dim2)


def vander(x: TensorState, N: int | None = None, increasing: bool = False):
    """Return a matrix with the powers N − 1, …, 1, 0 of each number in a row; `increasing` turns them round.

    Shapes: x (n,) -> (n, N)
    """
    if x.ndim != 1:
        raise ShapeError(f"x must be a one-dimensional tensor.\n  It has shape {list(x.shape)}")
    if N is not None and N < 0:
        raise ShapeError(f"N must be non-negative.\n  It is {N}")
    if x._data.dtype.kind in "iu":
        x = cast(x, INT64)
    count = x.shape[0] if N is None else N
    check_work((x.shape[0], count), x._data.dtype)
    unwritten = x.new_empty((x.shape[0], count))  # refused here where it is too large
    powers = [x**power for power in range(count)]
    if not powers:
        return unwritten
    return stack(powers if increasing else powers[::-1], -1)
