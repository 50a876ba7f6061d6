"""Sums and products with sparse tensors, and functions of each entry."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.dtypes import dtype, from_numpy_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import GraphError, ShapeError
from backlight.kernels.sparse_array import ADD_DENSE, SparseArray, is_sparse, no_kernel
from backlight.ops.dims import normalise_dim
from backlight.ops.elementwise import arithmetic, division, powers
from backlight.ops.linalg.matrix_norms import norm as dense_norm
from backlight.ops.reduction.reductions import sum as dense_sum
from backlight.ops.sparse import arithmetic as sparse_arithmetic
from backlight.ops.sparse import coo
from backlight.tensor.sparse.conversions import cast


def same_values(input: TensorState, values: TensorState) -> TensorState:
    """Return a sparse tensor of other values, as part of the graph, at the entries of one that is coalesced."""
    return coo.sparse_entries(values, input.detach())


def elementwise(function: Callable, input: TensorState, **options):
    """Apply a function that leaves 0 at 0 to the entries, coalesced."""
    entries = coo.coalesced_entries(input)
    return same_values(entries, function(coo.entry_values(entries), **options))


def values_of(input: TensorState) -> TensorState:
    """Return the memory of the values, without a history."""
    return wrap(input._data.values)


def in_common_dtype(*inputs: TensorState) -> list[TensorState]:
    """Return tensors cast to the dtype of their sum."""
    kind = arithmetic.add(*(wrap(np.zeros([1] * bool(one._data.ndim), one._data.dtype)) for one in inputs))._data.dtype
    return [one if one._data.dtype == kind else coo.sparse_cast(one, kind) for one in inputs]


def is_scalar(value: TensorState | float) -> bool:
    """Tell whether an operand is a number, or a dense tensor with no dims."""
    return not isinstance(value, TensorState) or (value._data.ndim == 0 and not is_sparse(value))


def add(input: TensorState, other: TensorState | float, *, alpha: float = 1) -> TensorState:
    if is_scalar(other) or is_scalar(input) or not is_sparse(other):
        raise ShapeError(ADD_DENSE)
    return coo_add(*in_common_dtype(input, other), alpha)


coo_add = sparse_arithmetic.sparse_add


def sub(input: TensorState, other: TensorState | float, *, alpha: float = 1) -> TensorState:
    return add(input, other, alpha=-alpha)


def rsub(input: TensorState, other: TensorState | float, *, alpha: float = 1) -> TensorState:
    return add(other, input, alpha=-alpha)


def neg(input: TensorState) -> TensorState:
    return sparse_arithmetic.sparse_neg(input)


def mul(input: TensorState | float, other: TensorState | float) -> TensorState:
    if is_scalar(input):
        input, other = other, input
    if not is_scalar(other):
        return sparse_arithmetic.sparse_mul(*in_common_dtype(input, other))
    found = arithmetic.mul(values_of(input), other)
    return sparse_arithmetic.sparse_scaled(cast(input, found._data.dtype), as_operand(other), found)


def div(input: TensorState, other: TensorState | float, *, rounding_mode: str | None = None) -> TensorState:
    if not is_scalar(other):
        raise ShapeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(other.shape)} for divisor)"
        )
    if rounding_mode is not None:
        entries = coo.coalesced_entries(input)
        return same_values(entries, division.div(coo.entry_values(entries), other, rounding_mode=rounding_mode))
    found = division.div(values_of(input), other)
    return sparse_arithmetic.sparse_divided(cast(input, found._data.dtype), as_operand(other), found)


def floor_divide(input: TensorState, other: TensorState | float) -> TensorState:
    return div(input, other, rounding_mode="floor")


def as_operand(value: TensorState | float) -> TensorState:
    return value if isinstance(value, TensorState) else wrap(np.asarray(value))


def pow(input: TensorState, exponent: float) -> TensorState:
    if not is_sparse(input) or isinstance(exponent, TensorState):
        raise no_kernel("pow.Tensor_Tensor" if isinstance(input, TensorState) else "pow.Scalar")
    if exponent == 0:
        raise GraphError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    return elementwise(lambda entries: powers.pow(entries, exponent), input)


def matmul(input: TensorState, other: TensorState) -> TensorState:
    dims = input._data.ndim, other._data.ndim
    if dims == (2, 1):
        return matmul(input, other.unsqueeze(1)).squeeze(1)
    if dims != (2, 2):
        raise no_kernel("bmm")
    if input._data.dtype != other._data.dtype:
        names = [from_numpy_dtype(one._data.dtype).old_name for one in (input, other)]
        raise GraphError(f"expected scalar type {names[0]} but found {names[1]}; cast one with .to()")
    both = is_sparse(input) and is_sparse(other)
    return (sparse_arithmetic.sparse_sparse_mm if both else sparse_arithmetic.sparse_mm)(input, other)


def linear(input: TensorState, weight: TensorState, bias: TensorState | None = None) -> TensorState:
    out = matmul(input, weight.t())
    return out if bias is None else out + bias


def addmm(
    input: TensorState, mat1: TensorState, mat2: TensorState, *, beta: float = 1, alpha: float = 1
) -> TensorState:
    if is_sparse(input):
        raise no_kernel("addmm")
    return beta * input + alpha * matmul(mat1, mat2)


def sum(
    input: TensorState, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
):
    input = input if dtype is None else cast(input, to_numpy_dtype(dtype))
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return sparse_arithmetic.sparse_total(input)
    return sum_along(input, [dim] if isinstance(dim, int) else list(dim), keepdim)


def sum_along(input: TensorState, dim: Sequence[int], keepdim: bool = False) -> TensorState:
    """Return the sums along dims: dense if no sparse dim is left."""
    data = input._data
    dims = reduced = sorted({normalise_dim(one, data.ndim) for one in dim})
    sparse = len(data.indices)
    of_values = [one - sparse + 1 for one in dims if one >= sparse]
    if of_values or len(dims) in (0, sparse):
        input = coo.coalesced_entries(input)
        data = input._data
    if of_values:
        summed = dense_sum(coo.entry_values(input), of_values)
        shape = tuple(size for one, size in enumerate(data.shape) if one not in dims or one < sparse)
        pattern = SparseArray(data.indices, summed._data, shape, True)
        input, dims = coo.sparse_entries(summed, wrap(pattern)), [one for one in dims if one < sparse]
    if len(dims) == sparse:
        out = dense_sum(coo.entry_values(input), 0)
    else:
        out = coo.without_sparse_dims(input, dims) if dims else input
    for one in reduced if keepdim else ():
        out = out.unsqueeze(one)
    return out


def norm(input: TensorState, p: float | str = "fro", dim: object = None, keepdim: bool = False, dtype: object = None):
    if dim is not None or p == "nuc":
        raise GraphError("norm_sparse currently only supports full reductions, so 'dim' must be empty or None")
    return dense_norm(coo.entry_values(coo.coalesced_entries(input)).reshape(-1), 2 if p == "fro" else p)


def any_of(input: TensorState) -> TensorState:
    return (values_of(coo.coalesced_entries(input.detach())) != 0).any()
