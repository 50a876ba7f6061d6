"""A matrix plus a product of matrices or vectors: addmm, addmv, addr, addbmm, baddbmm.

All compute beta · input + alpha · product. With beta = 0 the input is not even read, so that its NaN do not spread.
"""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import dtype, from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.linalg.matrix_products import (
    big_name,
    careful_product,
    check_batches,
    check_inner_sizes,
    check_matrices,
    check_matrix_and_vector,
    check_stacks,
    check_sum_dtypes,
    small_name,
)
from backlight.ops.type_promotion import common_dtype
from backlight.sizes import Shape

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm"]


def weighted_sum(xp, input: Array, product: Array, beta: float, alpha: float):
    """Return beta · input + alpha · product in the product's shape and dtype; `input` may broadcast to it."""
    kind = product.dtype
    if kind.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if beta == 0:
        return product if alpha == 1 else (product * alpha).astype(kind)
    scaled = product if alpha == 1 else product * alpha
    return (scaled + (input if beta == 1 else input * beta)).astype(kind, copy=False)


def check_added(name: str, input: Array, shape: Sequence[int], dtype: np.dtype) -> None:
    """Raise PyTorch's error unless `input` has the product's dtype and expands to its shape."""
    if input.dtype != dtype:
        raise ShapeError(
            f"self and mat2 must have the same dtype, but got {big_name(input.dtype)} and {big_name(dtype)}; "
            "convert one of them with .to(dtype)"
        )
    wanted, found = list(shape), list(input.shape)
    for place, size in enumerate(reversed(found), 1):
        if place > len(wanted):
            raise ShapeError(
                f"{name}: expand({found}, size={wanted}): the number of sizes provided ({len(wanted)}) must be "
                f"greater or equal to the number of dimensions in the tensor ({len(found)})"
            )
        if size not in (1, wanted[-place]):
            dim = len(wanted) - place
            raise ShapeError(
                f"The expanded size of the tensor ({wanted[dim]}) must match the existing size ({size}) at "
                f"non-singleton dimension {dim}.  Target sizes: {wanted}.  Tensor sizes: {found}\n  What is added must "
                "have the product's shape, or one that broadcasts to it"
            )


def check_dims(name: str, array: Array, dims: int, kind: str) -> None:
    """Raise PyTorch's error unless an array has so many dims."""
    if array.ndim != dims:
        raise ShapeError(f"{name} must be a {kind}, got {array.ndim}-D tensor; its shape is {list(array.shape)}")


def added_gradient(grad: Array, input_shape: Shape, beta: float, ops):
    """Return the gradient of the matrix that is added."""
    return ops.sum_to_size(grad if beta == 1 else ops.scale(grad, beta), input_shape)


def added_tangent(tangent: Array, beta: float, ops):
    """Return what the tangent of the matrix that is added gives."""
    return ops.scale(tangent, beta)


@op(tangent="multilinear", tangent_with={"beta": 0}, complex="holomorphic")
def addmm(xp, input: Array, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1):
    """Return beta · input + alpha · mat1 · mat2.

    Shapes: mat1 (n, k), mat2 (k, m), input broadcasts to (n, m) -> (n, m)
    """
    check_dims("mat1", mat1, 2, "matrix")
    check_dims("mat2", mat2, 2, "matrix")
    check_inner_sizes(mat1, mat2)
    check_sum_dtypes(input, mat1, mat2)
    check_added("addmm", input, (mat1.shape[0], mat2.shape[1]), mat1.dtype)
    return weighted_sum(xp, input, careful_product(xp, mat1, mat2, check_matrices), beta, alpha)


addmm.tangent("input")(added_tangent)
addmm.derivative("input", formula="beta · grad, summed over broadcast dims")(added_gradient)
addmm.derivative("mat1", formula="alpha · grad · mat2ᵀ")(
    lambda grad, mat2, alpha, ops: ops.mm(grad if alpha == 1 else ops.scale(grad, alpha), mat2.T)
)
addmm.derivative("mat2", formula="alpha · mat1ᵀ · grad")(
    lambda grad, mat1, alpha, ops: ops.mm(mat1.T, grad if alpha == 1 else ops.scale(grad, alpha))
)


@op(tangent="multilinear", tangent_with={"beta": 0}, complex="holomorphic")
def addmv(xp, input: Array, mat: Array, vec: Array, *, beta: float = 1, alpha: float = 1):
    """Return beta · input + alpha · mat · vec.

    Shapes: mat (n, k), vec (k,), input broadcasts to (n,) -> (n,)
    """
    if mat.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    check_matrix_and_vector(mat, vec)
    if input.ndim == 1 and input.shape[0] not in (1, mat.shape[0]):
        raise ShapeError(
            f"size mismatch, got input ({input.shape[0]}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    check_added("addmv", input, mat.shape[:1], mat.dtype)
    return weighted_sum(xp, input, careful_product(xp, mat, vec, check_matrix_and_vector), beta, alpha)


addmv.tangent("input")(added_tangent)
addmv.derivative("input", formula="beta · grad, summed over broadcast dims")(added_gradient)
addmv.derivative("mat", formula="alpha · grad · vecᵀ")(
    lambda grad, vec, alpha, ops: (grad if alpha == 1 else ops.scale(grad, alpha)).reshape((-1, 1)) * vec
)
addmv.derivative("vec", formula="alpha · matᵀ · grad")(
    lambda grad, mat, alpha, ops: ops.mv(mat.T, grad if alpha == 1 else ops.scale(grad, alpha))
)


def addr(input: TensorState, vec1: TensorState, vec2: TensorState, *, beta: float = 1, alpha: float = 1):
    """Return beta · input + alpha · vec1 · vec2ᵀ, in the common dtype of the three.

    Shapes: vec1 (n,), vec2 (m,), input broadcasts to (n, m) -> (n, m)
    """
    kind = from_numpy_dtype(common_dtype([input._data, vec1._data, vec2._data]))
    _check_factors(kind, beta=beta, alpha=alpha)
    return matrix_and_vectors(input.to(kind), vec1.to(kind), vec2.to(kind), beta=beta, alpha=alpha)


def _check_factors(kind: dtype, **factors) -> None:
    """Raise PyTorch's error for a float as the factor of whole numbers, or a number as that of bools."""
    for name, value in factors.items():
        if isinstance(value, bool) and kind.numpy.kind != "b":
            raise ShapeError(f"Boolean {name} only supported for Boolean results.")
        if kind.numpy.kind in "iub" and isinstance(value, (float, complex)):
            raise ShapeError(f"For integral input tensors, argument {name} must not be a floating point number.")


@op(name="addr", tangent="multilinear", tangent_with={"beta": 0}, complex="holomorphic", layout="preserved")
def matrix_and_vectors(xp, input: Array, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1):
    """A matrix plus the outer product of two vectors."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise ShapeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    product = vec1[:, None] * vec2
    check_added("addr", input, product.shape, product.dtype)
    return weighted_sum(xp, input, product, beta, alpha)


matrix_and_vectors.tangent("input")(added_tangent)
matrix_and_vectors.derivative("input", formula="beta · grad, summed over broadcast dims")(added_gradient)
matrix_and_vectors.derivative("vec1", formula="alpha · grad · vec2")(
    lambda grad, vec2, alpha, ops: ops.mv(grad if alpha == 1 else ops.scale(grad, alpha), vec2)
)
matrix_and_vectors.derivative("vec2", formula="alpha · gradᵀ · vec1")(
    lambda grad, vec1, alpha, ops: ops.mv((grad if alpha == 1 else ops.scale(grad, alpha)).T, vec1)
)


@op(tangent="multilinear", tangent_with={"beta": 0}, complex="holomorphic")
def baddbmm(xp, input: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1):
    """Return beta · input + alpha · batch1 · batch2, pair by pair.

    Shapes: batch1 (b, n, k), batch2 (b, k, m), input broadcasts to (b, n, m) -> (b, n, m)
    """
    if not input.dtype == batch1.dtype == batch2.dtype:
        names = [small_name(one.dtype) for one in (input, batch1, batch2)]
        raise ShapeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    check_batch_pair(batch1, batch2)
    check_added("baddbmm", input, (*batch1.shape[:2], batch2.shape[2]), batch1.dtype)
    product = careful_product(xp, widened(batch1), widened(batch2), check_stacks)
    return rounded(weighted_sum(xp, widened(input), product, beta, alpha), batch1.dtype)


baddbmm.tangent("input")(added_tangent)
baddbmm.derivative("input", formula="beta · grad, summed over broadcast dims")(added_gradient)
baddbmm.derivative("batch1", formula="alpha · grad · batch2ᵀ")(
    lambda grad, batch2, alpha, ops: ops.bmm(grad if alpha == 1 else ops.scale(grad, alpha), batch2.mT)
)
baddbmm.derivative("batch2", formula="alpha · batch1ᵀ · grad")(
    lambda grad, batch1, alpha, ops: ops.bmm(batch1.mT, grad if alpha == 1 else ops.scale(grad, alpha))
)


@op(tangent="multilinear", tangent_with={"beta": 0}, complex="holomorphic")
def addbmm(xp, input: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1):
    """Return beta · input + alpha · Σ batch1 · batch2 over the batch.

    Shapes: batch1 (b, n, k), batch2 (b, k, m), input broadcasts to (n, m) -> (n, m)
    """
    check_batch_pair(batch1, batch2)
    check_added("addbmm", input, (batch1.shape[1], batch2.shape[2]), batch1.dtype)
    inner = batch1.shape[0] * batch1.shape[2]
    side_by_side = np.moveaxis(batch1, 0, 1).reshape((batch1.shape[1], inner))
    product = careful_product(xp, side_by_side, batch2.reshape((inner, batch2.shape[2])), check_matrices)
    return weighted_sum(xp, input, product, beta, alpha)


addbmm.tangent("input")(added_tangent)
addbmm.derivative("input", formula="beta · grad, summed over broadcast dims")(added_gradient)
addbmm.derivative("batch1", formula="alpha · grad · batch2ᵀ")(
    lambda grad, batch2, alpha, ops: ops.bmm(grad if alpha == 1 else ops.scale(grad, alpha), batch2.mT)
)
addbmm.derivative("batch2", formula="alpha · batch1ᵀ · grad")(
    lambda grad, batch1, alpha, ops: ops.bmm(batch1.mT, grad if alpha == 1 else ops.scale(grad, alpha))
)


def check_batch_pair(batch1: Array, batch2: Array) -> None:
    """Raise PyTorch's error unless two 3-D batches can be multiplied pair by pair."""
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            raise ShapeError(f"{name} must be a 3D tensor; it has shape {list(batch.shape)}")
    if batch1.shape[0] != batch2.shape[0]:
        counts = f"{batch1.shape[0]} and {batch2.shape[0]}"
        raise ShapeError(f"batch1 and batch2 must have same number of batches, got {counts}")
    check_batches(batch1, batch2)
    if batch1.dtype != batch2.dtype:
        raise ShapeError(
            f"expected scalar type {big_name(batch1.dtype)} but found {big_name(batch2.dtype)}; "
            "convert one of them with .to(dtype)"
        )
