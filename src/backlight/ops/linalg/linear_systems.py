"""Linear equations: solve, inverses, triangular matrices."""

from collections.abc import Sequence

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.linalg import factors
from backlight.kernels.linalg.factors import solve_triangular
from backlight.ops.linalg.matrix_checks import (
    check_batches_broadcast,
    check_equation,
    check_float,
    check_same_kind,
    check_square,
    identity,
    raise_failure,
    times,
)
from backlight.ops.type_promotion import has_gradient
from backlight.system.user_warnings import warn_once

__all__ = ["inverse", "triangular_solve"]

SINGULAR = "The solver failed because the input matrix is singular."
NO_INVERSE = (
    "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.\n"
    "  For such matrices there are lstsq and pinv"
)


def is_vector(a_shape: Sequence[int], b_shape: Sequence[int]) -> bool:
    """Tell whether `b` holds one vector for each matrix, and not a matrix."""
    return len(b_shape) == 1 or (len(a_shape) - 1 == len(b_shape) and tuple(b_shape) == tuple(a_shape[:-1]))


@op(name="linalg_solve_ex", outputs=2, differentiable=(0,), returns=return_types.linalg_solve_ex, complex="holomorphic")
def solution(xp, A: Array, B: Array, *, left: bool = True, raising: str = ""):
    """The solution of A · X = B (of X · A = B with left=False), and where an LU factor of A has a zero.

    Args:
        raising: what the error begins with that is raised if there is such a zero; none is raised for "".
    """
    if has_gradient(A.dtype):
        check_same_kind("linalg.solve", A, B)
    check_float("linalg.solve", A)
    check_square("linalg.solve", A)
    vector = is_vector(A.shape, B.shape)
    columns = B[..., None] if vector else B
    check_equation("linalg.solve", A, columns, left)
    found, info = factors.solve(A, columns) if left else factors.solve(A.mT, columns.mT)
    raise_failure(info, SINGULAR, raising)
    return (found[..., 0] if vector else found if left else xp.ascontiguousarray(found.mT)), info


@solution.derivative("A", "B", formula="B: A⁻ᵀ · grad =: S; A: −S · outᵀ (left=False: S = grad · A⁻ᵀ, −outᵀ · S)")
def solution_inputs(grad, A, out, left, A_shape, B_shape, needs, ops):
    out = out[0]
    vector = is_vector(A_shape, B_shape)
    if vector:
        grad, out = grad[..., None], out[..., None]
    solved = ops.linalg_solve_ex(A.mT, grad, left=left)[0]
    grad_A = None
    if needs[0]:
        grad_A = ops.sum_to_size(-(solved @ out.mT) if left else -(out.mT @ solved), A_shape)
    return grad_A, ops.sum_to_size(solved[..., 0] if vector else solved, B_shape) if needs[1] else None


@public_function
def linalg_solve(A: TensorState, B: TensorState, *, left: bool = True):
    """Solve A · X = B, or X · A = B with left=False; `B` holds matrices, or one vector for each matrix of `A`.

    Shapes: A (…, n, n), B (…, n, k) or (…, n) -> that of B; batch dims broadcast

    Raises:
        LinAlgError: a matrix is singular.
    """
    return solution(A, B, left=left, raising="torch.linalg.solve").result


def linalg_solve_ex(A: TensorState, B: TensorState, *, left: bool = True, check_errors: bool = False):
    """Return (result, info): where info is not 0, the matrix is singular and the result holds infinities or NaN."""
    return solution(A, B, left=left, raising="torch.linalg.solve_ex" if check_errors else "")


@op(name="linalg_inv_ex", outputs=2, differentiable=(0,), returns=return_types.linalg_inv_ex, complex="holomorphic")
def inversion(xp, A: Array, *, raising: str = ""):
    """The inverse, and where an LU factor has a zero; `raising` as for `solution`."""
    check_square("linalg.inv", A)
    check_float("linalg.inv", A)
    inverse, info = factors.solve(A, identity(A.shape[-1], A))
    raise_failure(info, NO_INVERSE, raising)
    return inverse, info


inversion.derivative("A", formula="−outᵀ · grad · outᵀ")(lambda grad, out: -(out[0].mT @ grad @ out[0].mT))


@public_function
def linalg_inv(A: TensorState):
    """Return the inverses of square matrices.

    Shapes: A (…, n, n) -> (…, n, n)

    Raises:
        LinAlgError: a matrix is singular.
    """
    return inversion(A, raising="linalg.inv").inverse


@public_function
def inverse(input: TensorState):
    """Return the inverses of square matrices; the old name of `linalg.inv`."""
    return inversion(input, raising="linalg.inv").inverse


@public_function
def linalg_inv_ex(A: TensorState, *, check_errors: bool = False):
    """Return (inverse, info): where info is not 0, the matrix is singular and its inverse holds infinities or NaN."""
    return inversion(A, raising="linalg.inv_ex" if check_errors else "")


@op(complex="holomorphic")
def linalg_solve_triangular(xp, input: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False):
    """Solve input · X = B, or X · input = B with left=False; only one triangle of `input` is read.

    Shapes: input (…, n, n), B (…, n, k) -> (…, n, k); batch dims broadcast

    Args:
        upper: read the upper triangle, else the lower one.
        unitriangular: take the diagonal to be 1.
    """
    check_equation("linalg.solve_triangular", input, B, left)
    check_float("linalg.solve_triangular", input)
    check_same_kind("linalg.solve_triangular", input, B)
    if left:
        return solve_triangular(input, B, upper=upper, unit=unitriangular)
    return xp.ascontiguousarray(solve_triangular(input.mT, B.mT, upper=not upper, unit=unitriangular).mT)


@linalg_solve_triangular.derivative("input", "B", formula="B: input⁻ᵀ · grad =: S; input: the triangle of −S · outᵀ")
def linalg_solve_triangular_inputs(grad, input, out, upper, left, unitriangular, input_shape, B_shape, needs, ops):
    solved = ops.linalg_solve_triangular(input.mT, grad, upper=not upper, left=left, unitriangular=unitriangular)
    grad_A = None
    if needs[0]:
        product = -(solved @ out.mT) if left else -(out.mT @ solved)
        grad_A = ops.sum_to_size(triangle_read(product, upper, unitriangular, ops), input_shape)
    return grad_A, ops.sum_to_size(solved, B_shape) if needs[1] else None


def triangle_read(grad: Array, upper: bool, unit: bool, ops):
    """Return a gradient with zeros where a triangular matrix is not read."""
    return ops.triu(grad, int(unit)) if upper else ops.tril(grad, -int(unit))


@op(name="triangular_solve", outputs=2, returns=return_types.triangular_solve, complex="holomorphic")
def old_triangular(
    xp, input: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
):
    """The solution of A · X = input (of Aᵀ · X = input), and a copy of A."""
    for name, array in (("b", input), ("A", A)):
        if array.ndim < 2:
            raise ShapeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {array.ndim} "
                "dimensions instead"
            )
    check_square("triangular_solve", A)
    if A.shape[-1] != input.shape[-2]:
        raise ShapeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {times(A)} but each b matrix is "
            f"{times(input)}"
        )
    check_same_kind("triangular_solve", input, A, "b", "A")
    check_float("triangular_solve", A)
    check_batches_broadcast(A, input)
    read = A.mT if transpose else A
    found = solve_triangular(read, input, upper=upper != transpose, unit=unitriangular)
    return found, xp.array(xp.broadcast_to(A, (*found.shape[:-2], *A.shape[-2:])))


@old_triangular.derivative(
    "input", "A", formula="input: A⁻ᵀ · grad =: S; A: the triangle of −S · outᵀ, plus the copy's grad"
)
def old_triangular_inputs(grad, A, out, upper, transpose, unitriangular, input_shape, A_shape, needs, ops):
    solved, grad_A = None, grad[1]
    if grad[0] is not None:
        turned = A if transpose else A.mT
        solved = ops.linalg_solve_triangular(turned, grad[0], upper=upper == transpose, unitriangular=unitriangular)
        product = -(out[0] @ solved.mT) if transpose else -(solved @ out[0].mT)
        found = triangle_read(product, upper, unitriangular, ops)
        grad_A = found if grad_A is None else grad_A + found
        solved = ops.sum_to_size(solved, input_shape) if needs[0] else None
    return solved, None if grad_A is None or not needs[1] else ops.sum_to_size(grad_A, A_shape)


@public_function
def triangular_solve(
    input: TensorState, A: TensorState, upper: bool = True, transpose: bool = False, unitriangular: bool = False
):
    """Return (solution, copy of A) for A · X = input with a triangular A; the old form of `linalg.solve_triangular`."""
    found = old_triangular(input, A, upper, transpose, unitriangular)
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future "
        "PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one "
        "of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\n"
        "X = torch.linalg.solve_triangular(A, B).",
        stacklevel=3,
    )
    return found
