"""Cholesky factors of positive-definite matrices, and what they solve."""

from backlight import return_types
from backlight.codegen.complex_ops import adjoint
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.linalg import factors
from backlight.kernels.linalg.factors import solve_triangular
from backlight.ops.linalg.matrix_checks import (
    check_batches_broadcast,
    check_float,
    check_square,
    identity,
    raise_failure,
    times,
)
from backlight.ops.linalg.matrix_products import big_name
from backlight.system.user_warnings import warn_once

__all__ = ["cholesky", "cholesky_inverse", "cholesky_solve"]

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{0} is not positive-definite).\n  A symmetric matrix whose eigenvalues are nearly all positive becomes "
    "positive-definite by adding a small multiple of the identity"
)


def factor_and_info(xp, input: Array, upper: bool):
    """Return (L, info), or (Lᵀ, info) with `upper`, which reads the upper triangle."""
    lower, info = factors.cholesky(adjoint(input) if upper else input)
    return (xp.ascontiguousarray(adjoint(lower)) if upper else lower), info


def gradient_of_factor(grad: Array, factor: Array, upper: bool, ops):
    """Return L⁻ᵀ · sym(Φ(Lᵀ · grad)) · L⁻¹, where Φ keeps the lower triangle and sym(X) averages X and Xᵀ below it."""
    lower, grad = (adjoint(factor), adjoint(grad)) if upper else (factor, grad)
    turned = adjoint(lower)
    inner = ops.tril(turned @ grad)
    inner = 0.5 * (inner + adjoint(ops.tril(inner, -1)))
    halfway = ops.linalg_solve_triangular(turned, inner, upper=True)
    return ops.linalg_solve_triangular(lower, halfway, upper=False, left=False)


@op(name="linalg_cholesky_ex", outputs=2, differentiable=(0,), returns=return_types.linalg_cholesky_ex, complex="own")
def cholesky_factor(xp, input: Array, *, upper: bool = False, raising: str = ""):
    """The Cholesky factor, and 0 or the order of the first leading minor that is not positive.

    Args:
        raising: what the error begins with that is raised if there is such a minor; none is raised for "".
    """
    check_square("linalg.cholesky", input)
    check_float("linalg.cholesky", input)
    factor, info = factor_and_info(xp, input, upper)
    raise_failure(info, NOT_POSITIVE, raising)
    return factor, info


cholesky_factor.derivative("input", formula="L⁻ᵀ · sym(tril(Lᵀ · grad)) · L⁻¹")(
    lambda grad, out, upper, ops: gradient_of_factor(grad, out[0], upper, ops)
)


@public_function
def linalg_cholesky(input: TensorState, *, upper: bool = False):
    """Return the lower triangular L with L · Lᵀ = input, or with `upper` U with Uᵀ · U = input.

    Shapes: input (…, n, n) -> (…, n, n)

    Raises:
        LinAlgError: a matrix is not positive-definite.
    """
    return cholesky_factor(input, upper=upper, raising="linalg.cholesky").L


@public_function
def linalg_cholesky_ex(input: TensorState, *, upper: bool = False, check_errors: bool = False):
    """Return (L, info): where info is not 0, so many leading rows and columns were not positive-definite."""
    return cholesky_factor(input, upper=upper, raising="linalg.cholesky_ex" if check_errors else "")


@op(name="cholesky", complex="own")
def old_cholesky(xp, input: Array, upper: bool = False):
    """The Cholesky factor."""
    check_square("cholesky", input)
    check_float("cholesky", input)
    factor, info = factor_and_info(xp, input, upper)
    raise_failure(info, NOT_POSITIVE, "cholesky")
    return factor


old_cholesky.derivative("input", formula="L⁻ᵀ · sym(tril(Lᵀ · grad)) · L⁻¹")(
    lambda grad, out, upper, ops: gradient_of_factor(grad, out, upper, ops)
)


@public_function
def cholesky(input: TensorState, upper: bool = False):
    """Return the Cholesky factor of positive-definite matrices; the old name of `linalg.cholesky`."""
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
        "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
        "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.",
        stacklevel=3,
    )
    return old_cholesky(input, upper)


def solved_by_factor(factor: Array, b: Array, upper: bool):
    """Return x with L · Lᵀ · x = b, as an array."""
    lower = adjoint(factor) if upper else factor
    return solve_triangular(adjoint(lower), solve_triangular(lower, b, upper=False), upper=True)


def gradient_of_product(product: Array, factor: Array, upper: bool):
    """Return the gradient of L · Lᵀ brought to one of a triangular L.

    As PyTorch's it is full: a tril around L takes away the gradient of the triangle that is not read.
    """
    both = product + adjoint(product)
    return factor @ both if upper else both @ factor


@op(complex="own")
def cholesky_solve(xp, input: Array, input2: Array, upper: bool = False):
    """Solve A · X = input, given A's Cholesky factor `input2`.

    Shapes: input (…, n, k), input2 (…, n, n) -> (…, n, k)
    """
    for name, array in (("b", input), ("u", input2)):
        if array.ndim < 2:
            raise ShapeError(f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    if input2.shape[-1] != input2.shape[-2]:
        check_square("cholesky_solve", input2)
    if input2.shape[-1] != input.shape[-2]:
        raise ShapeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {times(input2)} but each b matrix is "
            f"{times(input)}"
        )
    if input2.dtype != input.dtype:
        raise ShapeError(
            f"Expected b and A to have the same dtype, but found b of type {big_name(input.dtype)} and A of type "
            f"{big_name(input2.dtype)} instead."
        )
    check_float("cholesky_solve", input)
    check_batches_broadcast(input2, input)
    return solved_by_factor(input2, input, upper)


@cholesky_solve.derivative("input", "input2", formula="input: A⁻¹ · grad; input2: −(S + Sᵀ) · L, S = A⁻¹ · grad · outᵀ")
def cholesky_solve_inputs(grad, input2, out, upper, input_shape, input2_shape, needs, ops):
    solved = ops.cholesky_solve(grad, input2, upper)
    grad_factor = None
    if needs[1]:
        grad_factor = ops.sum_to_size(gradient_of_product(-(solved @ adjoint(out)), input2, upper), input2_shape)
    return (ops.sum_to_size(solved, input_shape) if needs[0] else None), grad_factor


@op(complex="own")
def cholesky_inverse(xp, input: Array, upper: bool = False):
    """Return A⁻¹, given A's Cholesky factor `input`.

    Shapes: input (…, n, n) -> (…, n, n)
    """
    check_square("cholesky_inverse", input)
    check_float("cholesky_inverse", input)
    zeros = factors.first_zero(xp.diagonal(input, 0, -2, -1))
    raise_failure(
        zeros,
        "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.",
        "cholesky_inverse",
    )
    return solved_by_factor(input, identity(input.shape[-1], input), upper)


cholesky_inverse.derivative("input", formula="−out · (grad + gradᵀ) · out · L")(
    lambda grad, input, out, upper: gradient_of_product(-(out @ grad @ out), input, upper)
)
