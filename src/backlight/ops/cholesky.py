"""Cholesky factors of positive-definite matrices, and what they solve."""

from backlight import return_types
from backlight.errors import ShapeError
from backlight.kernels import factors
from backlight.kernels.triangular import solve_triangular
from backlight.notices import warn_once
from backlight.ops.declare import op
from backlight.ops.matrices import check_batches_broadcast, check_float, check_square, identity, raise_failure
from backlight.ops.products import big_name

__all__ = ["cholesky", "cholesky_inverse", "cholesky_solve"]

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{0} is not positive-definite).\n  A symmetric matrix whose eigenvalues are nearly all positive becomes "
    "positive-definite by adding a small multiple of the identity"
)


def factor_and_info(xp, input, upper: bool):
    """Return (L, info), or (Lᵀ, info) with `upper`, which reads the upper triangle."""
    lower, info = factors.cholesky(input.mT if upper else input)
    return (xp.ascontiguousarray(lower.mT) if upper else lower), info


def slope_of_factor(grad, factor, upper: bool, ops):
    """Return L⁻ᵀ · sym(Φ(Lᵀ · grad)) · L⁻¹, where Φ keeps the lower triangle and sym(X) averages X and Xᵀ below it."""
    lower, grad = (factor.mT, grad.mT) if upper else (factor, grad)
    inner = ops.tril(lower.mT @ grad)
    inner = 0.5 * (inner + ops.tril(inner, -1).mT)
    halfway = ops.linalg_solve_triangular(lower.mT, inner, upper=True)
    return ops.linalg_solve_triangular(lower, halfway, upper=False, left=False)


@op(
    name="linalg_cholesky_ex",
    node="LinalgCholeskyExBackward0",
    outputs=2,
    differentiable=(0,),
    returns=return_types.linalg_cholesky_ex,
)
def cholesky_factor(xp, A, *, upper: bool = False, raising: str = ""):  # noqa: N803 - PyTorch's name
    """The Cholesky factor, and 0 or the order of the first leading minor that is not positive.

    Args:
        raising: what the error begins with that is raised if there is such a minor; none is raised for "".
    """
    check_square("linalg.cholesky", A)
    check_float("linalg.cholesky", A)
    factor, info = factor_and_info(xp, A, upper)
    raise_failure(info, NOT_POSITIVE, raising)
    return factor, info


@cholesky_factor.derivative("A", formula="L⁻ᵀ · sym(tril(Lᵀ · grad)) · L⁻¹")
def cholesky_factor_input(grad, out, upper, ops):
    return slope_of_factor(grad, out[0], upper, ops)


def linalg_cholesky(A, *, upper=False):  # noqa: N803 - PyTorch's name
    """Return the lower triangular L with L · Lᵀ = A, or with `upper` U with Uᵀ · U = A.

    Shapes: A (…, n, n) -> (…, n, n)

    Raises:
        LinAlgError: a matrix is not positive-definite.
    """
    return cholesky_factor(A, upper=upper, raising="linalg.cholesky").L


def linalg_cholesky_ex(A, *, upper=False, check_errors=False):  # noqa: N803 - PyTorch's name
    """Return (L, info): where info is not 0, so many leading rows and columns were not positive-definite."""
    return cholesky_factor(A, upper=upper, raising="linalg.cholesky_ex" if check_errors else "")


@op(name="cholesky", node="CholeskyBackward0")
def old_cholesky(xp, input, upper: bool = False):
    """The Cholesky factor."""
    check_square("cholesky", input)
    check_float("cholesky", input)
    factor, info = factor_and_info(xp, input, upper)
    raise_failure(info, NOT_POSITIVE, "cholesky")
    return factor


@old_cholesky.derivative("input", formula="L⁻ᵀ · sym(tril(Lᵀ · grad)) · L⁻¹")
def old_cholesky_input(grad, out, upper, ops):
    return slope_of_factor(grad, out, upper, ops)


def cholesky(input, upper=False):
    """Return the Cholesky factor of positive-definite matrices; the old name of `linalg.cholesky`."""
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
        "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
        "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.",
        stacklevel=3,
    )
    return old_cholesky(input, upper)


# --- what a factor solves ---------------------------------------------------------------------------------------------


def solved_by_factor(factor, b, upper: bool):
    """Return x with L · Lᵀ · x = b, as an array."""
    lower = factor.mT if upper else factor
    return solve_triangular(lower.mT, solve_triangular(lower, b, upper=False), upper=True)


def slope_of_product(product, factor, upper: bool):
    """Return the gradient of L · Lᵀ brought to one of a triangular L.

    As PyTorch's it is full: a tril around L takes away the gradient of the triangle that is not read.
    """
    both = product + product.mT
    return factor @ both if upper else both @ factor


@op(node="CholeskySolveBackward0")
def cholesky_solve(xp, B, L, upper: bool = False):  # noqa: N803 - PyTorch's name
    """Solve A · X = B, given A's Cholesky factor.

    Shapes: B (…, n, k), L (…, n, n) -> (…, n, k)
    """
    for name, array in (("b", B), ("u", L)):
        if array.ndim < 2:
            raise ShapeError(f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    if L.shape[-1] != L.shape[-2]:
        check_square("cholesky_solve", L)
    if L.shape[-1] != B.shape[-2]:
        raise ShapeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    if L.dtype != B.dtype:
        raise ShapeError(
            f"Expected b and A to have the same dtype, but found b of type {big_name(B.dtype)} and A of type "
            f"{big_name(L.dtype)} instead."
        )
    check_batches_broadcast(L, B)
    return solved_by_factor(L, B, upper)


@cholesky_solve.derivative("B", "L", formula="B: A⁻¹ · grad; L: −(S + Sᵀ) · L, S = A⁻¹ · grad · outᵀ")
def cholesky_solve_inputs(grad, L, out, upper, B_shape, L_shape, needs, ops):  # noqa: N803 - PyTorch's names
    solved = ops.cholesky_solve(grad, L, upper)
    slope = None
    if needs[1]:
        slope = ops.sum_to_size(slope_of_product(-(solved @ out.mT), L, upper), L_shape)
    return (ops.sum_to_size(solved, B_shape) if needs[0] else None), slope


@op(node="CholeskyInverseBackward0")
def cholesky_inverse(xp, L, upper: bool = False):  # noqa: N803 - PyTorch's name
    """Return A⁻¹, given A's Cholesky factor.

    Shapes: L (…, n, n) -> (…, n, n)
    """
    check_square("cholesky_inverse", L)
    check_float("cholesky_inverse", L)
    zeros = factors.first_zero(xp.diagonal(L, 0, -2, -1))
    raise_failure(
        zeros,
        "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.",
        "cholesky_inverse",
    )
    return solved_by_factor(L, identity(L.shape[-1], L), upper)


@cholesky_inverse.derivative("L", formula="−out · (grad + gradᵀ) · out · L")
def cholesky_inverse_input(grad, L, out, upper):  # noqa: N803 - PyTorch's name
    return slope_of_product(-(out @ grad @ out), L, upper)
