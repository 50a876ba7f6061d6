"""Sorting and what rests on it: sort, topk, kthvalue, unique, searching in sorted values, counting into bins."""

from collections.abc import Callable

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import DimError, ShapeError, UnsupportedError
from backlight.kernels.half_precision import widened
from backlight.kernels.memory_order import in_rows
from backlight.kernels.reduction import sorting
from backlight.kernels.state_blocks import silent_floats
from backlight.ops.dims import flat_places, normalise_dim, with_numpy_names
from backlight.ops.indexing.index_selection import owned
from backlight.ops.number_operands import no_bools, no_kernel, require_no_bools
from backlight.ops.reduction.extremes import (
    SELECTED,
    ordered_gradient,
    ordered_tangent,
    picked_tangent,
    selected_gradient,
)
from backlight.ops.type_promotion import INT64, common_dtype, is_float
from backlight.sizes import require_memory

__all__ = [
    "argsort",
    "bincount",
    "bucketize",
    "histc",
    "isin",
    "kthvalue",
    "msort",
    "searchsorted",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
]


def order_along(values: Array, dim: int, descending: bool = False):
    """Return the indices that sort an array along `dim`: equals keep their order, NaN counts as the greatest."""
    return sorting.order_along(widened(values), dim, descending)  # NumPy orders NaN in float32, not in bfloat16


def first_along(values: Array, count: int, dim: int, largest: bool):
    """Return the first `count` of the indices that sort an array along `dim`, the largest first or the smallest."""
    last = np.ascontiguousarray(np.moveaxis(widened(values), dim, -1))
    found = sorting.top_places(last.reshape(-1, last.shape[-1]), count, largest)
    return np.moveaxis(found.reshape(*last.shape[:-1], count), -1, dim)


def picked(values: Array, indices: Array, dim: int):
    """Return (values, indices) with the values at `indices` along `dim`; two new arrays."""
    places = flat_places(indices, values.shape, dim)
    return values.reshape(-1)[places].reshape(indices.shape), np.ascontiguousarray(indices)


@op(name="sort", **SELECTED, returns=return_types.sort, layout="preserved")
def sort_dim(xp, input: Array, dim: int = -1, descending: bool = False, *, stable: bool = False):
    """The elements in order along `dim`, and where each was; sorting is always stable."""
    dim = normalise_dim(dim, input.ndim)
    if input.ndim == 0:
        found = np.array(input), np.zeros((), np.int64)
    else:
        found = picked(input, order_along(input, dim, descending), dim)
    return found, xp.array(found[1])


sort_dim.derivative("input", formula="grad, each where its element came from")(ordered_gradient)
sort_dim.tangent("input")(ordered_tangent)


@with_numpy_names
def sort(input: TensorState, dim: int = -1, descending: bool = False, *, stable: bool = False):
    """Return the elements in order along `dim` and where each was, as (values, indices).

    Equal elements keep their order with or without `stable`; NaN counts as the greatest.
    """
    return sort_dim(input, dim, descending, stable=stable)


def msort(input: TensorState):
    """Return the elements in order along dim 0."""
    return sort(input, 0).values


@with_numpy_names
def argsort(input: TensorState, dim: int = -1, descending: bool = False, stable: bool = False):
    """Return the indices that put the elements in order along `dim`."""
    with no_grad():
        return sort(input, dim, descending, stable=stable).indices


@op(name="topk", **SELECTED, returns=return_types.topk, layout="rows")
def topk_dim(xp, input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
    """The k largest (or smallest) elements along `dim` in order, and where they are."""
    if input.dtype.kind == "b":
        raise ShapeError("topk does not support bool dtypes on CPU; convert the input with .long()")
    dim = normalise_dim(dim, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= length:
        raise ShapeError(
            f"selected index k out of range\n  k must be from 0 to {length}, the size of dim {dim}, got {k}"
        )
    if input.ndim == 0:
        found = np.array(input), np.zeros((), np.int64)
    else:
        found = tuple(in_rows(part) for part in picked(input, first_along(input, k, dim, largest), dim))
    return found, xp.array(found[1])


topk_dim.derivative("input", formula="grad, each where its element came from, 0 elsewhere")(ordered_gradient)
topk_dim.tangent("input")(ordered_tangent)


@with_numpy_names
def topk(input: TensorState, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
    """Return the k largest (or smallest) elements along `dim`, in order, and where they are, as (values, indices)."""
    return topk_dim(input, k, dim, largest, sorted)


@op(name="kthvalue", **SELECTED, returns=return_types.kthvalue, dtype_error=no_bools("kthvalue_cpu"), layout="rows")
def kthvalue_dim(xp, input: Array, k: int, dim: int = -1, keepdim: bool = False):
    """The k-th smallest elements along `dim`, and where they are."""
    dim = normalise_dim(dim, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    if length == 0:
        raise DimError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= length:
        raise ShapeError(
            f"kthvalue(): selected number k out of range for dimension {dim}\n  k must be from 1 to {length}, got {k}"
        )
    found = ranked(input, k - 1, dim, keepdim)
    return found, xp.array(found[1])


def ranked(input: Array, rank: int, dim: int, keepdim: bool):
    """Return (values, indices) of the elements at a rank, counted from 0, along `dim`."""
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    indices = order_along(input, dim)[(slice(None),) * dim + (slice(rank, rank + 1),)]
    values, indices = picked(input, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


kthvalue_dim.derivative("input", formula="grad at the k-th smallest element, 0 elsewhere")(selected_gradient)
kthvalue_dim.tangent("input")(picked_tangent)


@with_numpy_names
def kthvalue(input: TensorState, k: int, dim: int = -1, keepdim: bool = False):
    """Return the k-th smallest elements along `dim` (k counts from 1) and where they are, as (values, indices)."""
    return kthvalue_dim(input, k, dim, keepdim)


@op(name="unique", node="Unique2Backward0", outputs=3, differentiable=(0,))
def distinct(xp, input: Array):
    """The distinct values in order; for each element, which one it is; how often each occurs."""
    values, inverse, counts = xp.unique(input, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(input.shape), counts


@op(name="unique_dim", outputs=3, differentiable=(0,))
def distinct_slices(xp, input: Array, dim: int):
    """The distinct slices along `dim` in order; for each slice, which one it is; how often each occurs."""
    dim = _dim_of_rows(input, dim)
    values, inverse, counts = xp.unique(input, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts


@op(name="unique_consecutive", outputs=3, differentiable=(0,))
def distinct_runs(xp, input: Array, dim: int | None = None):
    """The values with each run of equals made one; for each element, its run; how long each run is."""
    dim = None if dim is None else _dim_of_rows(input, dim)
    rows = input.reshape(-1) if dim is None else xp.moveaxis(input, dim, 0)
    length = len(rows)
    differs = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    starts = xp.concatenate([np.ones(min(length, 1), bool), differs])
    inverse = xp.cumsum(starts, dtype=INT64) - 1
    counts = xp.diff(xp.append(xp.flatnonzero(starts), length))
    values = rows[starts] if dim is None else xp.moveaxis(rows[starts], 0, dim)
    return values, inverse.reshape(input.shape) if dim is None else inverse, counts


def _without_derivative(function: Callable, name: str) -> None:
    @function.derivative("input", formula="none: an error, as in PyTorch")
    def refuse(grad: Array):
        raise UnsupportedError(
            f"the derivative for '{name}' is not implemented.\n  Find the places with torch.unique(x.detach(), "
            "return_inverse=True), and take or add up the elements of x there: indexing and index_add have derivatives"
        )


_without_derivative(distinct, "_unique2")
_without_derivative(distinct_slices, "unique_dim")
_without_derivative(distinct_runs, "unique_consecutive")


def _dim_of_rows(input: Array, dim: int) -> int:
    """Return the dim along which slices are compared, or raise PyTorch's error where there are none to compare."""
    dim = normalise_dim(dim, input.ndim)
    if not input.ndim:
        raise DimError(f"Dimension specified as {dim} but tensor has no dimensions")
    empty = input.shape.count(0)
    if input.shape[dim] == 0 and empty > 1:
        raise ShapeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if input.shape[dim] and empty:
        raise ShapeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


def _with_requested(
    values: TensorState, inverse: TensorState, counts: TensorState, return_inverse: bool, return_counts: bool
):
    parts = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return tuple(parts) if len(parts) > 1 else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Return the distinct values in order, and on request each element's place among them and their counts."""
    found = distinct(input) if dim is None else distinct_slices(input, dim)
    return _with_requested(*found, return_inverse, return_counts)


def unique_consecutive(
    input: TensorState, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
):
    """Return the values with each run of equals made one, and on request each element's run and the runs' lengths."""
    return _with_requested(*distinct_runs(input, dim), return_inverse, return_counts)


@op(name="isin")
def is_member(xp, elements: Array, test_elements: Array, *, assume_unique: bool = False, invert: bool = False):
    """Whether each element is among `test_elements`."""
    for array in (elements, test_elements):
        if array.dtype.kind == "b":
            raise ShapeError("Unsupported input type encountered for isin(): Bool; convert it with .long()")
    return xp.asarray(xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert))


def isin(
    elements: TensorState | int, test_elements: TensorState | int, *, assume_unique: bool = False, invert: bool = False
):
    """Tell for each of `elements` whether it is among `test_elements`; one of the two may be a number."""
    pair = [value if isinstance(value, TensorState) else wrap(np.array(value)) for value in (elements, test_elements)]
    return is_member(*pair, assume_unique=assume_unique, invert=invert)


def places_in(boundaries: Array, values: Array, right: bool):
    """Return where each value belongs in sorted boundaries: one row of them, or a row for each row of values."""
    side = "right" if right else "left"
    if boundaries.ndim == 1:
        return np.searchsorted(boundaries, values, side)
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(boundaries.shape[:-1]):
        found[row] = np.searchsorted(boundaries[row], values[row], side)
    return found


@op(name="searchsorted")
def search(xp, sorted_sequence, input, sorter: Array | None = None, *, right: bool = False, out_int32: bool = False):
    """Where each value belongs in a sorted sequence."""
    require_no_bools("searchsorted_out_cpu", sorted_sequence)
    sequence = sorted_sequence if sorter is None else xp.take_along_axis(sorted_sequence, owned(sorter), -1)
    if sequence.ndim == 0 or (sequence.ndim > 1 and sequence.shape[:-1] != input.shape[:-1]):
        raise ShapeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sequence.shape)} and input value tensor {list(input.shape)}"
        )
    return xp.asarray(places_in(widened(sequence), widened(input), right), np.int32 if out_int32 else np.int64)


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """Return where each value of `input` belongs in `sorted_sequence`, whose last dim is in order.

    Args:
        right: put a value after its equals, not before them; `side="right"` says the same.
        sorter: indices that put `sorted_sequence` in order.
    """
    if side not in (None, "left", "right"):
        raise ShapeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise ShapeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    edges, given = sorted_sequence._data, np.shape(getattr(input, "_data", input))
    if edges.ndim == 0:
        raise ShapeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if not given and edges.ndim != 1:
        raise ShapeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)"
        )
    values = _as_tensor_like(input, sorted_sequence)
    if sorter is not None and sorter._data.shape != sorted_sequence._data.shape:
        raise ShapeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sorted_sequence._data.shape)}and got sorter tensor {list(sorter._data.shape)}"
        )
    if sorter is not None and sorter._data.dtype != np.int64:
        kind = from_numpy_dtype(sorter._data.dtype).old_name
        raise ShapeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {kind}")
    if sorter is not None and sorter._data.size and not 0 <= sorter._data.min() <= sorter._data.max() < edges.shape[-1]:
        raise ShapeError("torch.searchsorted(): sorter index out of range")
    return search(sorted_sequence, values, sorter, right=right or side == "right", out_int32=out_int32)


def bucketize(input: TensorState, boundaries: TensorState, *, out_int32: bool = False, right: bool = False):
    """Return which interval between sorted `boundaries` each value of `input` is in."""
    if boundaries._data.ndim != 1:
        raise ShapeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._data.ndim})")
    return searchsorted(boundaries, _as_tensor_like(input, boundaries), out_int32=out_int32, right=right)


def _as_tensor_like(value: TensorState | float, other: TensorState):
    """Return a number as a tensor to compare with `other`."""
    if isinstance(value, TensorState):
        return value
    return wrap(np.array(value, common_dtype([other._data], [value])))


@op
def histc(xp, input: Array, bins: int = 100, min: float = 0, max: float = 0):
    """Count the elements in equal bins from `min` to `max`, or from the least to the greatest if both are 0."""
    if not is_float(input.dtype):
        raise UnsupportedError(
            f"\"histogram_cpu\" not implemented for '{from_numpy_dtype(input.dtype).old_name}'\n"
            "  Convert it first (.float())"
        )
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = (input.min(), input.max()) if min == max and input.size else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    if not np.isfinite(low) or not np.isfinite(high):
        raise ShapeError(f"torch.histc: range of [{low}, {high}] is not finite")
    if low > high:
        raise ShapeError("torch.histc: max must be larger than min")
    if not np.isfinite(input.dtype.type(max)) or not np.isfinite(input.dtype.type(min)):
        raise ShapeError("value cannot be converted to type float without overflow")
    require_memory((bins,), input.dtype)
    return _counts_in_bins(input, bins, input.dtype.type(low), input.dtype.type(high))


def _counts_in_bins(input: Array, bins: int, low: Array, high: Array):
    """Return how many elements lie in each of `bins` equal parts of [low, high], rounded as PyTorch rounds."""
    within = input[(input >= low) & (input <= high)]
    with silent_floats():
        places = (within - low) * input.dtype.type(bins) / (high - low)
    places = places[np.isfinite(places)].astype(np.int64)  # of a range too wide for the dtype nothing is counted
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(input.dtype)


@op
def bincount(xp, input: Array, weights: Array | None = None, minlength: int = 0):
    """Count how often each number from 0 up occurs, or add up `weights` there."""
    input = owned(input)
    if input.ndim != 1 or is_float(input.dtype) or (input.size and input.min() < 0):
        if input.ndim == 1 and is_float(input.dtype):
            raise no_kernel("bincount_cpu", input.dtype, "convert it with .long()")
        raise ShapeError(
            "bincount only supports 1-d non-negative integral inputs.\n"
            f"  Got {from_numpy_dtype(input.dtype)} of shape {list(input.shape)}"
        )
    require_no_bools("bincount_cpu", input)
    if minlength < 0:
        raise ShapeError(f"minlength should be >= 0, got {minlength}")
    if weights is not None and weights.shape != input.shape:
        raise ShapeError("weights should be 1-d and have the same length as input")
    counts = xp.bincount(input, weights, minlength)
    return counts.astype(weights.dtype) if weights is not None and weights.dtype == np.float32 else counts
