"""Factors L · D · Lᵀ of symmetric matrices, and what they solve."""

from math import prod

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError
from backlight.kernels.linalg import ldl_factors
from backlight.ops.linalg.matrix_checks import check_float, check_matrix, check_square, raise_failure, times
from backlight.ops.linalg.matrix_products import big_name
from backlight.sizes import Shape

ZERO_BLOCK = "D[{0},{0}] is zero and using it on ldl_solve would result in a division by zero."


@op(name="linalg_ldl_factor_ex", outputs=3, differentiable=(0,), returns=return_types.linalg_ldl_factor_ex)
def symmetric_factor(xp, input: Array, *, hermitian: bool = False, raising: str = ""):
    """The factors in one matrix, the rows exchanged, and where D has a zero.

    Args:
        hermitian: the same for real matrices.
        raising: what the error begins with that is raised if there is such a zero; none is raised for "".
    """
    check_square("torch.linalg.ldl_factor_ex", input)
    check_float("torch.linalg.ldl_factor_ex", input)
    batch, size = input.shape[:-2], input.shape[-1]
    found = [ldl_factors.ldl(matrix) for matrix in input.reshape((prod(batch), size, size))]
    packed = xp.array([one for one, _, _ in found], input.dtype).reshape(input.shape)
    pivots = xp.array([one for _, one, _ in found], xp.int32).reshape(input.shape[:-1])
    info = xp.array([one for _, _, one in found], xp.int32).reshape(batch)[()]
    raise_failure(info, ZERO_BLOCK, raising)
    return packed, pivots, info


@symmetric_factor.derivative("input", formula="none: PyTorch has none either")
def symmetric_factor_input(grad: Array):
    raise GraphError(
        "derivative for aten::linalg_ldl_factor_ex is not implemented\n  linalg.solve and linalg.cholesky have one"
    )


def linalg_ldl_factor_ex(input: TensorState, *, hermitian: bool = False, check_errors: bool = False):
    """Return (LD, pivots, info) of symmetric matrices; where info is not 0, D has a zero there. It has no gradient.

    Shapes: input (…, n, n) -> (…, n, n), (…, n), (…)
    """
    return symmetric_factor(input, hermitian=hermitian, raising="torch.linalg.ldl_factor_ex" if check_errors else "")


def linalg_ldl_factor(input: TensorState, *, hermitian: bool = False):
    """Return (LD, pivots) of symmetric matrices, of which the lower triangle is read. It has no gradient.

    Raises:
        LinAlgError: a matrix is singular.
    """
    packed, pivots, _ = symmetric_factor(input, hermitian=hermitian, raising="torch.linalg.ldl_factor")
    return return_types.linalg_ldl_factor(packed, pivots)


@op
def linalg_ldl_solve(xp, LD: Array, pivots: Array, B: Array, *, hermitian: bool = False):
    """Solve A · X = B, given what `linalg.ldl_factor` returns for A.

    Shapes: LD (…, n, n), pivots (…, n), B (…, n, k) -> (…, n, k)
    """
    check_factored(LD, pivots, B)
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    shapes = (*batch, *LD.shape[-2:]), (*batch, LD.shape[-1]), (*batch, *B.shape[-2:])
    count = prod(batch)
    stacked = [
        xp.broadcast_to(one, shape).reshape((count, *shape[len(batch) :]))
        for one, shape in zip((LD, pivots, B), shapes)
    ]
    return xp.array([ldl_factors.ldl_solve(*one) for one in zip(*stacked)], B.dtype).reshape(shapes[2])


def check_factored(factor: Array, pivots: Array, b: Array) -> None:
    """Raise PyTorch's error for factors and a right side that do not belong together."""
    name = "torch.linalg.ldl_solve"
    check_square(name, factor)
    check_float(name, factor)
    check_matrix(name, b, "B")
    if factor.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {times(factor)} but each b matrix is {times(b)}"
        )
    if factor.dtype != b.dtype:
        raise ShapeError(
            f"Expected b and A to have the same dtype, but found b of type {big_name(b.dtype)} and A of type "
            f"{big_name(factor.dtype)} instead."
        )
    if factor.shape[:-1] != pivots.shape:
        raise ShapeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.kind != "i":
        raise ShapeError(f"{name}: Expected pivots to be integers. Got {big_name(pivots.dtype)}")


@linalg_ldl_solve.derivative("LD", formula="none: PyTorch has none either")
def linalg_ldl_solve_factor(grad: Array):
    raise GraphError("derivative for aten::linalg_ldl_solve is not implemented\n  linalg.solve has one")


@linalg_ldl_solve.derivative("B", formula="A⁻¹ · grad, as A is symmetric")
def linalg_ldl_solve_right(grad: Array, LD: Array, pivots: Array, hermitian: bool, B_shape: Shape, ops):
    return ops.sum_to_size(ops.linalg_ldl_solve(LD, pivots, grad, hermitian=hermitian), B_shape)
