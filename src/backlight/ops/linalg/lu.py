"""LU factors with partial pivoting, and what they solve: A = P · L · U."""

from collections.abc import Sequence

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.dispatch.arguments.parsing import kind_of
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.linalg import factors
from backlight.ops.elementwise.complex_numbers import conj_physical
from backlight.ops.linalg.matrix_checks import check_equation, check_float, dtype_of, identity, raise_failure, zeros
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.type_promotion import holds_complex
from backlight.sizes import Shape
from backlight.system.user_warnings import warn_once

__all__ = ["lu", "lu_solve", "lu_unpack"]

ZERO_PIVOT = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def check_factored(name: str, array: Array, pivot: bool) -> None:
    """Raise PyTorch's error for what cannot be factored."""
    if array.ndim < 2:
        raise ShapeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(array.shape)} instead; see unsqueeze"
        )
    if not pivot:
        raise ShapeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU; leave pivot=True")
    if array.dtype.char not in "fdFD":
        raise UnsupportedError(f"\"lu_cpu\" not implemented for '{big_name(array.dtype)}'; convert it first (.float())")


def unpacked(packed: Array, ops):
    """Return (L, U) of a packed factor, L with its diagonal of ones.

    Shapes: packed (…, m, n) -> (…, m, k), (…, k, n) with k = min(m, n)
    """
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    ones = identity(max(rows, columns), packed)[:rows, :count]
    return ops.tril(packed[..., :count], -1) + ones, ops.triu(packed[..., :count, :])


def packed_gradient(grad_l: Array | None, grad_u: Array | None, shape: Sequence[int], ops):
    """Return the gradient of a packed factor of this shape from those of L and U; either may be missing."""
    lower = None if grad_l is None else filled_up(ops.tril(grad_l, -1), shape, -1, ops)
    upper = None if grad_u is None else filled_up(ops.triu(grad_u), shape, -2, ops)
    return upper if lower is None else lower if upper is None else lower + upper


def filled_up(part: Array, shape: Sequence[int], dim: int, ops):
    """Return a part of a matrix with zeros behind it, up to the whole matrix's size in `dim`."""
    missing = shape[dim] - part.shape[dim]
    if not missing:
        return part
    sizes = list(part.shape)
    sizes[dim] = missing
    return ops.cat([part, zeros(sizes, part)], dim)


@op(complex="linear")
def permutation_matrix(xp, pivots: Array, size: int, kind: np.dtype):
    """P, of a dtype, from the rows that were exchanged."""
    return factors.permutation_matrix(pivots, size, kind)


def gradient_of_factors(grad_l: Array | None, grad_u: Array | None, order: Array, lower: Array, upper: Array, ops):
    """Return the gradient of A = P · L · U from those of L and U; either may be missing.

    For square A it is P · L⁻ᵀ · [tril(Lᵀ · ∂L, −1) + triu(∂U · Uᵀ)] · U⁻ᵀ. Of another A the square part is factored;
    rows below it make L₂ = A₂ · U⁻¹, columns to its right U₂ = L⁻¹ · A₂.
    """
    count = upper.shape[-2]
    grad_l = zeros(lower.shape, lower) if grad_l is None else grad_l
    grad_u = zeros(upper.shape, upper) if grad_u is None else grad_u
    square_l, square_u = lower[..., :count, :], upper[..., :count]
    inner_l = square_l.mT @ grad_l[..., :count, :] - grad_u[..., count:] @ upper[..., count:].mT
    inner_u = grad_u[..., :count] @ square_u.mT - lower[..., count:, :].mT @ grad_l[..., count:, :]
    inner = ops.tril(inner_l, -1) + ops.triu(inner_u)
    right = ops.linalg_solve_triangular(
        square_l.mT, ops.cat([inner, grad_u[..., count:]], -1), upper=True, unitriangular=True
    )
    left = ops.cat([right[..., :count], grad_l[..., count:, :]], -2)
    left = ops.linalg_solve_triangular(square_u.mT, left, upper=False, left=False)
    product = left if upper.shape[-1] == count else ops.cat([left, right[..., count:]], -1)
    return order @ product


@op(
    name="linalg_lu_factor_ex",
    outputs=3,
    differentiable=(0,),
    returns=return_types.linalg_lu_factor_ex,
    complex="holomorphic",
)
def packed_factor(xp, A: Array, *, pivot: bool = True, raising: str = ""):
    """L and U in one matrix, the rows exchanged, and where U has a zero on its diagonal.

    Args:
        raising: what the error begins with that is raised if there is such a zero; none is raised for "".
    """
    check_factored("torch.lu_factor", A, pivot)
    packed, pivots, info = factors.lu(A)
    raise_failure(info, ZERO_PIVOT, raising)
    return packed, pivots, info


@packed_factor.derivative("A", formula="P · L⁻ᵀ · [tril(Lᵀ · ∂L, −1) + triu(∂U · Uᵀ)] · U⁻ᵀ")
def packed_factor_input(grad: Array, out: Sequence[Array], ops):
    lower, upper = unpacked(out[0], ops)
    count = upper.shape[-2]
    order = ops.permutation_matrix(out[1], lower.shape[-2], dtype_of(lower))
    return gradient_of_factors(
        ops.tril(grad[..., :count], -1), ops.triu(grad[..., :count, :]), order, lower, upper, ops
    )


def linalg_lu_factor_ex(A: TensorState, *, pivot: bool = True, check_errors: bool = False):
    """Return (LU, pivots, info): both factors in one matrix; where info is not 0, U has a zero there.

    Shapes: A (…, m, n) -> (…, m, n), (…, min(m, n)), (…)
    """
    return packed_factor(A, pivot=pivot, raising="torch.linalg.lu_factor_ex" if check_errors else "")


def linalg_lu_factor(A: TensorState, *, pivot: bool = True):
    """Return (LU, pivots): both factors in one matrix, for `linalg.lu_solve` and `lu_unpack`.

    Raises:
        LinAlgError: a matrix is singular.
    """
    packed, pivots, _ = packed_factor(A, pivot=pivot, raising="torch.linalg.lu_factor")
    return return_types.linalg_lu_factor(packed, pivots)


def lu(A: TensorState, pivot: bool = True, get_infos: bool = False):
    """Return (LU, pivots), and info on request; the old form of `linalg.lu_factor`."""
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
        stacklevel=3,
    )
    if not isinstance(pivot, bool):
        raise ArgumentError(f"_lu_with_info(): argument 'pivot' must be bool, not {kind_of(pivot)}")
    packed, pivots, info = packed_factor(A, pivot=pivot)
    return return_types._lu_with_info(packed, pivots, info) if get_infos else (packed, pivots)


@op(name="linalg_lu", outputs=3, differentiable=(1, 2), returns=return_types.linalg_lu, complex="holomorphic")
def three_factors(xp, A: Array, *, pivot: bool = True):
    """The factors P, L and U."""
    check_factored("linalg.lu", A, pivot)
    packed, pivots, _ = factors.lu(A)
    return factors.permutation_matrix(pivots, A.shape[-2], A.dtype), *unpacked_arrays(xp, packed)


def unpacked_arrays(xp, packed: Array):
    """Return (L, U) of a packed factor, as arrays."""
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    return xp.tril(packed[..., :count], -1) + xp.eye(rows, count, dtype=packed.dtype), xp.triu(packed[..., :count, :])


three_factors.derivative("A", formula="P · L⁻ᵀ · [tril(Lᵀ · ∂L, −1) + triu(∂U · Uᵀ)] · U⁻ᵀ")(
    lambda grad, out, ops: gradient_of_factors(grad[0], grad[1], *out, ops)
)


def linalg_lu(A: TensorState, *, pivot: bool = True):
    """Return (P, L, U): a permutation, a lower triangular matrix with ones on its diagonal, an upper one.

    Shapes: A (…, m, n) -> (…, m, m), (…, m, k), (…, k, n) with k = min(m, n)
    """
    return three_factors(A, pivot=pivot)


@op(outputs=3, differentiable=(1, 2), returns=return_types.lu_unpack, complex="holomorphic", layout="rows")
def lu_unpack(xp, LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True):
    """Return (P, L, U) from what `linalg.lu_factor` returns; empty tensors for those not requested.

    Shapes: LU_data (…, m, n), LU_pivots (…, k) -> (…, m, m), (…, m, k), (…, k, n) with k = min(m, n)
    """
    if LU_data.ndim < 2:
        raise ShapeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    if unpack_pivots and LU_pivots.dtype != xp.int32:
        raise ShapeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if unpack_pivots and LU_data.size and (not LU_pivots.ndim or not _are_rows(LU_pivots, LU_data.shape[-2])):
        raise ShapeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result "
            "of lu_factor?"
        )
    nothing = xp.zeros((0,), LU_data.dtype)
    order = _order(xp, LU_data, LU_pivots) if unpack_pivots else nothing
    return order, *(unpacked_arrays(xp, LU_data) if unpack_data else (nothing, nothing.copy()))


def _order(xp, packed: Array, pivots: Array):
    """Return P; of matrices without elements it exchanges nothing."""
    rows = packed.shape[-2]
    if packed.size:
        return factors.permutation_matrix(pivots, rows, packed.dtype)
    return xp.array(xp.broadcast_to(xp.eye(rows, dtype=packed.dtype), (*packed.shape[:-1], rows)))


def _are_rows(pivots: Array, count: int) -> bool:
    return pivots.shape[-1] <= count and (not pivots.size or 1 <= pivots.min() <= pivots.max() <= count)


@lu_unpack.derivative("LU_data", formula="tril(∂L, −1) + triu(∂U)")
def lu_unpack_input(grad: Sequence[Array | None], unpack_data: bool, LU_data_shape: Shape, ops):
    return packed_gradient(grad[0], grad[1], LU_data_shape, ops) if unpack_data else None


@op(name="linalg_lu_solve", complex="holomorphic")
def lu_solution(xp, LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False):
    """Solve A · X = B given A's factors; X · A = B with left=False, Aᵀ in the place of A with `adjoint`.

    Shapes: LU (…, n, n), pivots (…, n), B (…, n, k) -> (…, n, k); batch dims broadcast
    """
    if LU.dtype != B.dtype:
        raise ShapeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {big_name(LU.dtype)} and "
            f"B of type {big_name(B.dtype)} instead"
        )
    if pivots.dtype != xp.int32:
        raise ShapeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_float("linalg.lu_solve", LU)
    check_equation("linalg.lu_solve", LU, B, left)
    if LU.shape[-1] != pivots.shape[-1]:
        raise ShapeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    _check_pivots(LU, pivots)
    solver = factors.lu_solve if adjoint != left else factors.lu_solve_transposed
    return solver(LU, pivots, B) if left else xp.ascontiguousarray(solver(LU, pivots, B.mT).mT)


@lu_solution.derivative("LU", "B", formula="B: A⁻ᵀ · grad =: S; with ∂A = −S · outᵀ, L: Pᵀ · ∂A · Uᵀ, U: Lᵀ · Pᵀ · ∂A")
def linalg_lu_solve_inputs(grad, LU, pivots, out, left, adjoint, LU_shape, B_shape, needs, ops):
    solved = ops.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    grad_lu = None
    if needs[0]:
        product = -(solved @ out.mT) if left else -(out.mT @ solved)
        lower, upper = unpacked(LU, ops)
        turned = ops.permutation_matrix(pivots, LU_shape[-1], dtype_of(LU)).mT @ (product.mT if adjoint else product)
        grad_lu = ops.sum_to_size(packed_gradient(turned @ upper.mT, lower.mT @ turned, LU_shape, ops), LU_shape)
    return grad_lu, ops.sum_to_size(solved, B_shape) if needs[1] else None


def _check_pivots(LU: Array, pivots: Array) -> None:
    """Raise PyTorch's error for pivots that are no row swaps of these factors."""
    if LU.shape[:-1] != pivots.shape:
        raise ShapeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead; LU has shape {list(LU.shape)}"
        )
    if not pivots.size:
        return
    if pivots.min() < 1:
        bound = "greater or equal to 1"
    elif pivots.max() > LU.shape[-2]:
        bound = "smaller or equal to LU.size(-2)"
    else:
        return
    raise ShapeError(
        f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?\n"
        f"  LU.size(-2) is {LU.shape[-2]}, and they go from {pivots.min()} to {pivots.max()}"
    )


@public_function
def linalg_lu_solve(LU: TensorState, pivots: TensorState, B: TensorState, *, left: bool = True, adjoint: bool = False):
    """Solve A · X = B given A's factors; X · A = B with left=False, Aᴴ in the place of A with `adjoint`.

    Shapes: LU (…, n, n), pivots (…, n), B (…, n, k) -> (…, n, k); batch dims broadcast
    """
    if adjoint and holds_complex(B):  # Aᴴ · X = B is Aᵀ · conj(X) = conj(B)
        return conj_physical(lu_solution(LU, pivots, conj_physical(B), left=left, adjoint=True))
    return lu_solution(LU, pivots, B, left=left, adjoint=adjoint)


@public_function
def lu_solve(input: TensorState, LU_data: TensorState, LU_pivots: TensorState):
    """Solve A · X = b given A's factors; the old form of `linalg.lu_solve`."""
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch "
        "release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\n"
        "should be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)",
        stacklevel=3,
    )
    return lu_solution(LU_data, LU_pivots, input)
