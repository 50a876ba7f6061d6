"""Sums and products with sparse tensors, as ops that have PyTorch's derivatives."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.errors import ShapeError
from backlight.kernels.sparse_array import (
    ADD_DENSE,
    SparseArray,
    is_sparse,
    merged,
    sums_at,
)


@op(node="AddBackward0")
def sparse_add(xp, input: Array, other: Array, alpha: float):
    """input + alpha · other of two sparse tensors, or of a dense one and a sparse one, which is dense."""
    if is_sparse(input):
        if not is_sparse(other):
            raise ShapeError(ADD_DENSE)
        return merged(input, other, alpha)
    if is_sparse(other):
        if input.shape != other.shape:
            raise ShapeError(
                f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while "
                f"other has size {list(other.shape)} (FYI: dense-sparse addition does not currently support "
                "broadcasting)"
            )
        return input + (other if alpha == 1 else other * alpha)
    return input + alpha * other


sparse_add.derivative("input", formula="grad")(lambda grad: grad)
sparse_add.derivative("other", formula="alpha · grad")(lambda grad, alpha: grad if alpha == 1 else grad * alpha)


@op(node="NegBackward0", tangent="linear")
def sparse_neg(xp, input: Array):
    """The negative of each entry."""
    return -input


sparse_neg.derivative("input", formula="−grad")(lambda grad: -grad)


@op(node="MulBackward0", tangent="linear")
def sparse_scaled(xp, input: Array, factor: Array, values: Array):
    """The entries of a sparse tensor with their values multiplied, which is done already."""
    return input.with_values(values)


sparse_scaled.derivative("input", formula="grad · factor")(lambda grad, factor: grad * factor)
sparse_scaled.derivative("factor", formula="Σ grad · input")(
    lambda grad, input, factor_dtype, ops: ops.to_copy(ops.sparse_total(grad * input), factor_dtype)
)


@op(node="DivBackward0", tangent="linear")
def sparse_divided(xp, input: Array, divisor: Array, values: Array):
    """The entries of a sparse tensor with their values divided, which is done already."""
    return input.with_values(values)


sparse_divided.derivative("input", formula="grad / divisor")(lambda grad, divisor: grad / divisor)
sparse_divided.derivative("divisor", formula="−Σ grad · input / divisor²")(
    lambda grad, input, divisor, divisor_dtype, ops: ops.to_copy(
        -ops.sparse_total(grad * input) / (divisor * divisor), divisor_dtype
    )
)


@op(node="MulBackward0", tangent="multilinear")
def sparse_mul(xp, input: Array, other: Array):
    """The product of a sparse tensor with another one, or with a dense one; it is sparse."""
    return input * other if is_sparse(input) else other * input


sparse_mul.derivative("input", formula="grad · other")(lambda grad, other: grad * other)
sparse_mul.derivative("other", formula="grad · input")(lambda grad, input: grad * input)


@op(node="MmBackward0", tangent="multilinear")
def sparse_mm(xp, input: Array, mat2: Array):
    """The matrix product of two matrices of which one is sparse; it is dense."""
    return product(input, mat2)


sparse_mm.derivative("input", formula="grad · mat2ᵀ")(
    lambda grad, mat2, ops: ops.sparse_mm(grad, ops.sparse_permute(mat2, (1, 0)))
)
sparse_mm.derivative("mat2", formula="inputᵀ · grad")(
    lambda grad, input, ops: ops.sparse_mm(ops.sparse_permute(input, (1, 0)), grad)
)


@op(node="SparseAddmmBackward0", tangent="multilinear")
def sparse_product(xp, mat1: Array, mat2: Array):
    """The matrix product of a sparse and a dense matrix, whose gradient for the sparse one is sparse."""
    return product(mat1, mat2)


def _product_at(ops, left: Array, right: Array, like: Array):
    """The product of two matrices at the entries of a sparse one."""
    return ops.sparse_mask(ops.sparse_mm(left, right), ops.coalesced_entries(like))


sparse_product.derivative("mat1", formula="grad · mat2ᵀ at the entries of mat1")(
    lambda grad, mat1, mat2, ops: _product_at(ops, grad, ops.sparse_permute(mat2, (1, 0)), mat1)
)
sparse_product.derivative("mat2", formula="mat1ᵀ · grad")(
    lambda grad, mat1, ops: ops.sparse_mm(ops.sparse_permute(mat1, (1, 0)), grad)
)


@op(node="SparseSparseMatmulBackward0", tangent="multilinear")
def sparse_sparse_mm(xp, input: Array, mat2: Array):
    """The matrix product of two sparse matrices, which is sparse."""
    return product(input, mat2)


sparse_sparse_mm.derivative("input", formula="grad · mat2ᵀ at the entries of input")(
    lambda grad, input, mat2, ops: _product_at(ops, grad, ops.sparse_permute(mat2, (1, 0)), input)
)
sparse_sparse_mm.derivative("mat2", formula="inputᵀ · grad at the entries of mat2")(
    lambda grad, input, mat2, ops: _product_at(ops, ops.sparse_permute(input, (1, 0)), grad, mat2)
)


@op(node="SumBackward0", tangent="linear")
def sparse_total(xp, input: Array):
    """The sum of all elements; its gradient is dense, as PyTorch's."""
    return input.values.sum(dtype=input.dtype if input.dtype.kind == "f" else None)


sparse_total.derivative("input", formula="grad everywhere")(
    lambda grad, input_shape, ops: ops.expand(grad, input_shape)
)


def product(left: np.ndarray | SparseArray, right: np.ndarray | SparseArray) -> np.ndarray | SparseArray:
    """Return the matrix product of two matrices; it is sparse if both are."""
    for matrix in (left, right):
        if is_sparse(matrix) and len(matrix.indices) != 2:
            raise ShapeError(f"addmm: matrices expected, got {len(matrix.indices)}D tensor; its other dims are dense")
    if left.shape[1] != right.shape[0] and is_sparse(left):
        raise ShapeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {left.shape[1]}, got {right.shape[0]}: the shapes "
            f"{list(left.shape)} and {list(right.shape)} cannot be multiplied"
        )
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left.shape[0]}x{left.shape[1]} and "
            f"{right.shape[0]}x{right.shape[1]})"
        )
    if not is_sparse(left) and not is_sparse(right):
        return np.matmul(left, right)
    if not is_sparse(left):
        return product(_transposed(right), left.T).T
    if not is_sparse(right):
        rows, columns = left.indices
        return sums_at(left.values[:, None] * right[columns], rows, left.shape[0])
    return _sparse_product(left, right.coalesce())


def _transposed(matrix: SparseArray) -> SparseArray:
    return SparseArray(matrix.indices[::-1], matrix.values, matrix.shape[::-1])


def _sparse_product(left: SparseArray, right: SparseArray) -> SparseArray:
    """Return the product of two sparse matrices: of each entry of `left` with the row of `right` that it meets."""
    (rows, columns), (own_rows, own_columns) = left.indices, right.indices
    starts = np.searchsorted(own_rows, columns, "left")
    counts = np.searchsorted(own_rows, columns, "right") - starts
    entries = np.repeat(np.arange(len(rows)), counts)
    places = np.arange(len(entries)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    indices = np.stack([rows[entries], own_columns[places]])
    values = left.values[entries] * right.values[places]
    return SparseArray(indices, values, (left.shape[0], right.shape[1])).coalesce()
