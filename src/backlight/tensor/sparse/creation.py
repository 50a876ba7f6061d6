"""Sparse tensors made from coordinates and values, and an older name of their product."""

from collections.abc import Sequence

import numpy as np

from backlight.dtypes import dtype, to_numpy_dtype
from backlight.engine.tensor_state import LEAF, TensorState, wrap
from backlight.errors import GraphError, ShapeError
from backlight.kernels.sparse_array import SparseArray, keys_of
from backlight.ops.elementwise.copying import cast
from backlight.ops.linalg.matrix_products import mm
from backlight.ops.sparse.coo import sparse_entries
from backlight.tensor.creation import as_tensor
from backlight.tensor.factories import float_dtype
from backlight.types import Device

__all__ = ["sparse_coo_tensor", "spmm"]


def sparse_coo_tensor(
    indices: TensorState | Sequence,
    values: TensorState | Sequence | None = None,
    size: Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
):
    """Make a sparse tensor of values at coordinates; gradients flow to the values.

    Shapes: indices (sparse dims, entries), values (entries, *dense dims) -> (*sparse sizes, *dense sizes)

    Args:
        indices: the coordinates; or the size of a tensor without entries, if no values are given.
        values: what is there; values at the same coordinates add up.
        size: by default as large as the indices need.
        check_invariants: accepted; indices are always checked.
        is_coalesced: whether the coordinates are in order, each once.

    Raises:
        RuntimeError: indices, values and size do not fit together, or an index is outside the size.
    """
    if values is None:
        shape = tuple(indices if size is None else size)
        nothing = np.zeros((len(shape), 0), np.int64), np.zeros(0, float_dtype(dtype))
        return wrap(SparseArray(*nothing, shape), LEAF if requires_grad else None)
    values = as_tensor(values, device=device)
    values = values if dtype is None else cast(values, to_numpy_dtype(dtype))
    values = values.reshape((1,)) if values._data.ndim == 0 else values
    places = np.array(as_tensor(indices)._data).astype(np.int64)
    if places.ndim != 2:
        raise ShapeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if places.shape[1] != values._data.shape[0]:
        raise ShapeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: "
            f"{values._data.shape[0]}"
        )
    shape = _needed(places, values._data.shape[1:]) if size is None else tuple(size)
    _check(places, values._data.shape, shape, bool(is_coalesced))
    pattern = SparseArray(places, np.broadcast_to(values._data, values._data.shape), shape, bool(is_coalesced))
    if values.requires_grad:
        return sparse_entries(values, wrap(pattern))
    return wrap(pattern.with_values(np.ascontiguousarray(values._data)), LEAF if requires_grad else None)


def spmm(input: TensorState, mat2: TensorState):
    """Return the product of a sparse and a dense matrix; an older name of `mm`."""
    return mm(input, mat2)


def _needed(places: np.ndarray, dense: tuple[int, ...]) -> tuple[int, ...]:
    """Return the smallest size that holds all coordinates."""
    if places.size and places.min() < 0:
        row, column = np.argwhere(places < 0)[0]
        raise GraphError(f"found negative index {places[row, column]} for dim {row}; count from 0")
    return (*((places.max(axis=1) + 1).tolist() if places.shape[1] else [0] * len(places)), *dense)


def _check(places: np.ndarray, values: tuple[int, ...], shape: tuple[int, ...], coalesced: bool) -> None:
    dims = len(places)
    if len(shape) != dims + len(values) - 1:
        raise ShapeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {dims}, "
            f"dense_dim = {len(values) - 1}"
        )
    if values[1:] != shape[dims:]:
        expected = [places.shape[1], *shape[dims:]]
        raise ShapeError(f"values has incorrect size, expected {expected}, got {list(values)}")
    for dim, (row, size) in enumerate(zip(places, shape)):
        if row.size and row.min() < 0:
            raise GraphError(f"found negative index {row.min()} for dim {dim}; count from 0")
        if row.size and row.max() >= size:
            raise GraphError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {row.max()}"
            )
    if coalesced and np.any(np.diff(keys_of(places, shape)) <= 0):
        raise GraphError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
