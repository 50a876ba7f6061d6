"""Sparse tensors with other dims: permuted, joined, selected from."""

from collections.abc import Sequence

import numpy as np

from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import DimError, GraphError, ShapeError
from backlight.kernels.sparse_array import SparseArray, is_sparse, no_kernel
from backlight.ops.dims import normalise_dim
from backlight.ops.reduction.reductions import sum as dense_sum
from backlight.ops.shape.joining import cat as dense_cat
from backlight.ops.sparse import coo
from backlight.tensor.sparse.arithmetic import in_common_dtype


def transpose(input: TensorState, dim0: int, dim1: int) -> TensorState:
    order = list(range(input._data.ndim))
    first, second = (normalise_dim(dim, len(order)) for dim in (dim0, dim1))
    order[first], order[second] = order[second], order[first]
    return coo.sparse_transpose(input, order)


def t(input: TensorState) -> TensorState:
    sparse, dense = input.sparse_dim(), input.dense_dim()
    if sparse > 2 or dense:
        raise GraphError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {sparse} sparse and {dense} dense "
            "dimensions"
        )
    return coo.sparse_t(input) if input._data.ndim == 2 else input


def permute(input: TensorState, *dims) -> TensorState:
    order = [normalise_dim(dim, input._data.ndim) for dim in (dims[0] if isinstance(dims[0], Sequence) else dims)]
    if sorted(order) != list(range(input._data.ndim)):
        raise GraphError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input._data.ndim} is not equal to len(dims) = {len(order)}"
        )
    return coo.sparse_permute(input, order)


def unsqueeze(input: TensorState, dim: int) -> TensorState:
    data = input._data
    at = normalise_dim(dim, data.ndim + 1)
    shape = (*data.shape[:at], 1, *data.shape[at:])
    entries = coo.coalesced_entries(input) if input.requires_grad else input
    data, found = entries._data, coo.entry_values(entries)
    if at > len(data.indices):
        found, rows = found.unsqueeze(at - len(data.indices) + 1), data.indices
    else:
        rows = np.insert(data.indices, at, 0, axis=0)
    return coo.sparse_entries(found, wrap(SparseArray(rows, found._data, shape, data.coalesced)))


def cat(tensors: Sequence[TensorState], dim: int = 0) -> TensorState:
    if not all(map(is_sparse, tensors)):
        at = [is_sparse(one) for one in tensors].index(False)
        raise GraphError(f"Concatenating sparse tensors, but a dense tensor was found at position {at}.")
    at = normalise_dim(dim, tensors[0]._data.ndim)
    if at >= len(tensors[0]._data.indices):
        raise no_kernel("cat along a dense dim")
    entries = [coo.coalesced_entries(one) if one.requires_grad else one for one in in_common_dtype(*tensors)]
    for one in entries[1:]:
        if [*one.shape[:at], *one.shape[at + 1 :]] != [*entries[0].shape[:at], *entries[0].shape[at + 1 :]]:
            raise ShapeError(
                f"All tensors must have the same shape: {list(entries[0].shape)} != {list(one.shape)}, but for dim {at}"
            )
    found = dense_cat([coo.entry_values(one) for one in entries])
    return coo.sparse_entries(found, wrap(coo.joined([one._data for one in entries], at)))


def stack(tensors: Sequence[TensorState], dim: int = 0) -> TensorState:
    return cat([unsqueeze(one, dim) for one in tensors], dim)


def select(input: TensorState, dim: int, index: int) -> TensorState:
    at = normalise_dim(dim, input._data.ndim)
    size = input._data.shape[at]
    if not -size <= index < size:
        raise DimError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {at}")
    return taken(input, at, np.array([index % size]), keep=False)


def index_select(input: TensorState, dim: int, index: TensorState) -> TensorState:
    return taken(input, normalise_dim(dim, input._data.ndim), index._data.reshape(-1), keep=True)


def taken(input: TensorState, dim: int, rows: np.ndarray, keep: bool) -> TensorState:
    entries = coo.coalesced_entries(input) if input.requires_grad else input
    data, found = entries._data, coo.entry_values(entries)
    sparse = len(data.indices)
    if dim >= sparse:
        at = dim - sparse + 1
        found = found.index_select(at, wrap(rows)) if keep else found.select(at, int(rows[0]))
        shape = [*data.shape]
        shape[dim : dim + 1] = [len(rows)] if keep else []
        return coo.sparse_entries(found, wrap(SparseArray(data.indices, found._data, tuple(shape), data.coalesced)))
    places, pattern = coo.selected(data, dim, rows, keep)
    found = found.index_select(0, wrap(places))
    return dense_sum(found, 0) if not len(pattern.indices) else coo.sparse_entries(found, wrap(pattern))


def get_item(input: TensorState, index) -> TensorState:
    parts = index if isinstance(index, tuple) else (index,)
    if not is_sparse(input) or not all(part is None or isinstance(part, (int, np.integer, slice)) for part in parts):
        tensors = any(isinstance(part, (TensorState, list)) for part in parts)
        raise no_kernel("index.Tensor" if tensors else "as_strided")
    if any(isinstance(part, slice) and part != slice(None) for part in parts):
        raise no_kernel("as_strided")
    dim = 0
    for part in parts:
        if part is None:
            input = input.unsqueeze(dim)
        elif not isinstance(part, slice):
            if not -input.shape[dim] <= part < input.shape[dim]:
                raise DimError(
                    f"index {part} is out of bounds for dimension {dim} with size {input.shape[dim]}; count from 0"
                )
            input = input.select(dim, int(part))
            continue
        dim += 1
    return input


def unbind(input: TensorState, dim: int = 0) -> tuple:
    return tuple(select(input, dim, number) for number in range(input.shape[dim]))
