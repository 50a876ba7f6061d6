"""Pseudoinverses, ranks and least squares: linear algebra up to a tolerance."""

from collections.abc import Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.complex_ops import adjoint
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function, public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError
from backlight.ops.linalg.eigen import check_symmetric, or_not_converged
from backlight.ops.linalg.linear_systems import is_vector
from backlight.ops.linalg.matrix_checks import check_batches_broadcast, check_matrix
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.linalg.singular_values import decomposed
from backlight.sizes import Shape

__all__ = ["pinverse"]


def tolerance(largest: Array, shape: Sequence[int], atol: Array | float | None, rtol: Array | float | None):
    """Return below which size a singular value counts as 0: max(atol, rtol · the largest).

    Args:
        atol, rtol: numbers, arrays of the batch's shape, or None; with neither, rtol is max(m, n) · eps.
    """
    if rtol is None:
        positive = np.asarray(0 if atol is None else atol) > 0
        rtol = np.where(positive, 0, np.finfo(largest.dtype).eps * max(shape[-2:]))
    return np.maximum(0 if atol is None else atol, rtol * largest)[..., None]


def largest_of(sizes: Array):
    """Return the largest along the last dim; 0 where there is none."""
    return sizes.max(-1, initial=0)


def bound(value: TensorState | float | None):
    """Return a tolerance, where there is one, as a tensor."""
    return value if value is None or isinstance(value, TensorState) else wrap(np.float64(value))


@op(name="linalg_pinv", complex="own")
def pseudoinverse(xp, input: Array, atol: Array | None = None, rtol: Array | None = None, hermitian: bool = False):
    """The matrix that undoes what of another can be undone: V · diag(1 / s) · Uᵀ, with 0 for 1 / 0."""
    check_pinv(input)
    if hermitian:
        check_symmetric(input, "L")
        values, left = or_not_converged(xp.linalg.eigh, input)
        right, sizes = adjoint(left), xp.abs(values)
    else:
        left, values, right = decomposed(xp, input, False)
        sizes = values
    kept = sizes > tolerance(largest_of(sizes), input.shape, atol, rtol)
    inverse = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(input.dtype)
    return (adjoint(right) * inverse[..., None, :]) @ adjoint(left)


def check_pinv(array: Array) -> None:
    """Raise PyTorch's error for what has no pseudoinverse."""
    if array.ndim < 2 or array.dtype.char not in "fdFD":
        name = from_numpy_dtype(array.dtype).old_name
        raise ShapeError(
            f"linalg.pinv({name}{{{list(array.shape)}}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )


pseudoinverse.derivative("input", formula="−Pᵀ · grad · Pᵀ, plus what leaves the range of the input, P = out")(
    lambda grad, input, out: pseudoinverse_gradient(grad, input, out)
)


def pseudoinverse_gradient(grad: Array, matrix: Array, inverse: Array):
    """Return the gradient of a matrix A from that of its pseudoinverse P.

    Source: Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems, 1973.
    """
    turned, grad = adjoint(inverse), adjoint(grad)
    if matrix.shape[-2] <= matrix.shape[-1]:
        inner = grad @ inverse
        outer = inner @ turned
        found = -adjoint(inverse @ inner) + outer - (matrix @ inverse) @ outer
        return found + (turned @ inverse) @ (grad - inner @ matrix)
    inner = inverse @ grad
    outer = turned @ inner
    found = -adjoint(inner @ inverse) + (grad - matrix @ inner) @ inverse @ turned
    return found + outer - (outer @ inverse) @ matrix


@composite_function
def linalg_pinv(
    input: TensorState, rcond: float | None = None, hermitian: bool = False, *, atol=None, rtol: float | None = None
):
    """Return the pseudoinverses of matrices.

    Shapes: input (…, m, n) -> (…, n, m)

    Args:
        rcond: the old name of `rtol`.
        hermitian: the matrices are symmetric, and only their lower triangle is read.
        atol, rtol: singular values up to max(atol, rtol · largest) count as 0; numbers, or tensors of the batch's
            shape. Without them, rtol is max(m, n) · eps.
    """
    rtol = rcond if rtol is None else rtol
    return pseudoinverse(input, bound(atol), bound(rtol), hermitian)


@public_function
def pinverse(input: TensorState, rcond: float = 1e-15):
    """Return the pseudoinverses of matrices; the old form of `linalg.pinv`."""
    return linalg_pinv(input, rcond)


@op(name="linalg_matrix_rank", complex="own")
def count_of_values(xp, input: Array, atol: Array | None = None, rtol: Array | None = None, hermitian: bool = False):
    """How many singular values are not 0."""
    check_matrix("torch.linalg.matrix_rank", input, "input")
    if input.dtype.char not in "fdFD":
        raise ShapeError("This function doesn't handle types other than float and double; convert it (.float())")
    if hermitian:
        check_symmetric(input, "L")
        sizes = xp.abs(or_not_converged(xp.linalg.eigvalsh, input))
    else:
        sizes = decomposed(xp, input, False, False)
    over = sizes > tolerance(largest_of(sizes), input.shape, atol, rtol)
    return xp.add.reduce(over, -1, xp.int64)


@composite_function
def linalg_matrix_rank(input: TensorState, tol=None, hermitian: bool = False, *, atol=None, rtol: float | None = None):
    """Return how many singular values are not 0, as int64.

    Shapes: input (…, m, n) -> (…)

    Args:
        tol: the old name of `atol`, with rtol=0.
        hermitian: the matrices are symmetric, and only their lower triangle is read.
        atol, rtol: as in `linalg.pinv`.
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    for name, given in (("atol", atol), ("rtol", rtol)):
        if isinstance(given, TensorState) and given._data.dtype.kind in "cW":
            kind = from_numpy_dtype(given._data.dtype).old_name
            raise ShapeError(f"torch.linalg.matrix_rank: {name} tensor of complex type is not supported. Got {kind}")
    return count_of_values(input, bound(atol), bound(rtol), hermitian)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@op(name="linalg_lstsq", outputs=4, differentiable=(0, 1), returns=return_types.linalg_lstsq)
def least_squares(xp, input: Array, b: Array, rcond: float | None = None, driver: str = "gelsy"):
    """The X of least norm with the least ‖A · X − B‖, the squares that are left, the rank, the singular values."""
    check_least_squares(input, b, driver)
    vector = is_vector(input.shape, b.shape)
    columns = b[..., None] if vector else b
    check_batches_broadcast(columns, input)
    rows, count = input.shape[-2:]
    left, sizes, right = decomposed(xp, input, False)
    kept = xp.ones(sizes.shape, bool)
    if driver != "gels":
        kept = sizes > tolerance(largest_of(sizes), input.shape, None, rcond)
    found = right.mT @ (left.mT @ columns * (kept / xp.where(kept, sizes, 1)).astype(input.dtype)[..., None])
    rank = kept.sum(-1)
    left_over = xp.zeros((0,), input.dtype)
    if rows > count and driver != "gelsy" and (rank == count).all():
        left_over = ((input @ found - columns) ** 2).sum(-2)
    ranks = xp.zeros((0,), xp.int64) if driver == "gels" else rank.astype(xp.int64)[()]
    values = sizes if driver in ("gelsd", "gelss") else xp.zeros((0,), input.dtype)
    return (found[..., 0] if vector else found), left_over, ranks, values


def check_least_squares(a: Array, b: Array, driver: str) -> None:
    """Raise PyTorch's error for equations of which no least squares can be found."""
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise ShapeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise ShapeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype.char not in "fd":
        raise ShapeError("This function doesn't handle types other than float and double; convert it (.float())")
    if a.dtype != b.dtype:
        raise ShapeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {big_name(a.dtype)} and "
            f"other's dtype {big_name(b.dtype)}"
        )
    if not 0 <= a.ndim - b.ndim <= 1:
        raise ShapeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    dim = -1 if is_vector(a.shape, b.shape) else -2
    if a.shape[-2] != b.shape[dim]:
        raise ShapeError(f"{name}: input.size(-2) should match other.size({dim})")
    if dim == -2 and a.ndim != b.ndim:
        check_batches_broadcast(b[..., None], a)
    if driver not in DRIVERS:
        raise ShapeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")


@least_squares.derivative(
    "input", "b", formula="b: Pᵀ · ∂X, P the pseudoinverse; input: P's gradient ∂X · bᵀ; and 2 · rest · ∂r"
)
def least_squares_inputs(
    grad: Sequence[Array | None], input: Array, b: Array, out: Sequence[Array], input_shape: Shape, b_shape: Shape, ops
):
    found, (grad_solution, grad_rest) = out[0], grad
    if is_vector(input_shape, b_shape):
        b, found = b[..., None], found[..., None]
        grad_solution = None if grad_solution is None else grad_solution[..., None]
    grad_a, grad_b = equation_gradients(grad_solution, grad_rest, input, b, found, ops)
    if grad_a is None:
        return None, None
    grad_b = ops.sum_to_size(grad_b, tuple(b.shape))
    return ops.sum_to_size(grad_a, input_shape), grad_b.reshape(b_shape)


def equation_gradients(grad_solution: Array | None, grad_rest: Array | None, input: Array, b: Array, found: Array, ops):
    """Return the gradients of A and B from those of the solution and of the squares that are left."""
    grad_a = grad_b = None
    if grad_solution is not None:
        inverse = ops.linalg_pinv(input)
        grad_a = pseudoinverse_gradient(grad_solution @ b.mT, input, inverse)
        grad_b = inverse.mT @ grad_solution
    if grad_rest is not None and grad_rest.shape[-1]:
        rest = 2 * (input @ found - b) * grad_rest[..., None, :]
        grad_a = rest @ found.mT if grad_a is None else grad_a + rest @ found.mT
        grad_b = -rest if grad_b is None else grad_b - rest
    return grad_a, grad_b


@public_function
def linalg_lstsq(input: TensorState, b: TensorState, rcond: float | None = None, *, driver: str | None = None):
    """Return (solution, residuals, rank, singular_values) of the least squares problem min ‖input · X − b‖.

    Of all best solutions it is the one of least norm.

    Shapes: input (…, m, n), b (…, m, k) or (…, m) -> (…, n, k) or (…, n)

    Args:
        rcond: singular values up to rcond times the largest count as 0; None is max(m, n) · eps.
        driver: "gels" takes the matrices to have full rank, "gelsy" (for None) tells the rank, "gelsd" and "gelss" the
            singular values too. Residuals are returned for m > n, full rank, and not by "gelsy".
    """
    return least_squares(input, b, rcond, "gelsy" if driver is None else driver)
