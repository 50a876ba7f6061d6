"""The standard's functions that move, join and repeat elements, or search, sort and index them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.ops.dims import normalise_dims
from backlight.ops.elementwise import where_clamp
from backlight.ops.elementwise.copying import cast
from backlight.ops.indexing import gather_scatter
from backlight.ops.reduction import extremes, sorting
from backlight.ops.shape import expanding, flipping, joining, reshaping, splitting, transposing
from backlight.ops.type_promotion import common_dtype
from backlight.tensor.interop.numpy_counterparts import expand_dims
from backlight.tensor.interop.numpy_counterparts import take as taken

__all__ = ["broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose", "moveaxis"]
__all__ += ["permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]
__all__ += ["argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis"]
__all__ += ["unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


def broadcast_arrays(*arrays) -> list:
    """Broadcast each to the common shape."""
    return list(expanding.broadcast_tensors(*arrays))


def broadcast_to(x: TensorState, /, shape: tuple[int, ...]):
    """Broadcast to a shape."""
    return expanding.broadcast_to(x, shape)


def _alike(arrays: Sequence[TensorState]) -> list:
    kind = common_dtype([np.empty(1, each._data.dtype) for each in arrays])
    return [cast(each, kind) for each in arrays]


def concat(arrays: Sequence[TensorState], /, *, axis: int | None = 0):
    """Concatenate along an axis; axis=None flattens first."""
    if axis is None:
        return joining.cat([reshaping.ravel(each) for each in _alike(arrays)])
    return joining.cat(_alike(arrays), axis)


def stack(arrays: Sequence[TensorState], /, *, axis: int = 0):
    """Stack along a new axis."""
    return joining.stack(_alike(arrays), axis)


def unstack(x: TensorState, /, *, axis: int = 0) -> tuple:
    """Return the slices along an axis."""
    return splitting.unbind(x, axis)


def flip(x: TensorState, /, *, axis: int | tuple[int, ...] | None = None):
    """Reverse the order along some axes, or all."""
    dims = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return flipping.flip(x, dims)


def matrix_transpose(x: TensorState, /):
    """Swap the last two dims."""
    return x.mT


def moveaxis(x: TensorState, source: int | tuple[int, ...], destination: int | tuple[int, ...], /):
    """Move some dims to other places."""
    return transposing.movedim(x, source, destination)


def permute_dims(x: TensorState, /, axes: tuple[int, ...]):
    """Return the dims in another order."""
    return transposing.permute(x, tuple(axes))


def repeat(x: TensorState, repeats: int | TensorState, /, *, axis: int | None = None):
    """Repeat each element or slice."""
    return expanding.repeat_interleave(x, repeats, axis)


def reshape(x: TensorState, /, shape: tuple[int, ...], *, copy: bool | None = None):
    """Return the elements in another shape; copy=False never copies."""
    if copy is False:
        return x.view(shape)
    found = reshaping.reshape(x, shape)
    return found if copy is None else found.clone()


def roll(x: TensorState, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None):
    """Shift cyclically along some axes."""
    if axis is None:
        return flipping.roll(x, shift)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return flipping.roll(x, shift if isinstance(shift, tuple) else (shift,) * len(axes), axes)


def squeeze(x: TensorState, /, axis: int | tuple[int, ...]):
    """Remove dims of size 1.

    Raises:
        ValueError: another dim is named.
    """
    shape = x._data.shape or (1,)
    axes = normalise_dims(axis, x._data.ndim)
    if any(shape[each] != 1 for each in axes):
        raise ValueProblem(f"cannot select an axis to squeeze out which has size not equal to one, got {axis}")
    return reshaping.squeeze(x, axes)


def tile(x: TensorState, repetitions: tuple[int, ...], /):
    """Repeat the full array."""
    return expanding.tile(x, tuple(repetitions))


# --- searching, sorting, sets -----------------------------------------------------------------------------------------


def argmax(x: TensorState, /, *, axis: int | None = None, keepdims: bool = False):
    """Return the indices of the maxima."""
    return extremes.argmax(x, axis, keepdims)


def argmin(x: TensorState, /, *, axis: int | None = None, keepdims: bool = False):
    """Return the indices of the minima."""
    return extremes.argmin(x, axis, keepdims)


def nonzero(x: TensorState, /) -> tuple:
    """Return the indices of nonzero elements, one tensor for each dim."""
    return x.nonzero(as_tuple=True)


def searchsorted(x1: TensorState, x2: TensorState, /, *, side: str = "left", sorter: TensorState | None = None):
    """Return the insertion points of x2's elements in x1, which is sorted or has a sorter."""
    return sorting.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition: TensorState, /, *choices):
    """Return elements of x1 where the condition holds, of x2 elsewhere; without them, the indices where it holds."""
    return where_clamp.where(condition, *choices) if choices else nonzero(condition)


def sort(x: TensorState, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """Return the sorted elements."""
    return sorting.sort(x, axis, descending, stable=stable).values


def argsort(x: TensorState, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """Return the indices that sort the elements."""
    return sorting.argsort(x, axis, descending, stable=stable)


def take(x: TensorState, indices: TensorState, /, *, axis: int | None = None):
    """Return slices at indices along an axis, which may be left out for one dim."""
    return taken(x, indices, 0 if axis is None and x._data.ndim == 1 else axis)


def take_along_axis(x: TensorState, indices: TensorState, /, *, axis: int = -1):
    """Return elements at indices along an axis."""
    return gather_scatter.take_along_dim(x, indices, axis)


class UniqueAll(NamedTuple):
    """The sorted unique elements, their first indices, the inverse indices, and the counts."""

    values: TensorState
    indices: TensorState
    inverse_indices: TensorState
    counts: TensorState


class UniqueCounts(NamedTuple):
    """The sorted unique elements, and their counts."""

    values: TensorState
    counts: TensorState


class UniqueInverse(NamedTuple):
    """The sorted unique elements, and the inverse indices."""

    values: TensorState
    inverse_indices: TensorState


def unique_all(x: TensorState, /) -> UniqueAll:
    """Return the unique elements, their first indices, the inverse indices and the counts."""
    values, inverse, counts = sorting.unique(x, return_inverse=True, return_counts=True)
    order = sorting.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[counts.cumsum(0) - counts], inverse, counts)


def unique_counts(x: TensorState, /) -> UniqueCounts:
    """Return the unique elements and their counts."""
    return UniqueCounts(*sorting.unique(x, return_counts=True))


def unique_inverse(x: TensorState, /) -> UniqueInverse:
    """Return the unique elements and the inverse indices."""
    return UniqueInverse(*sorting.unique(x, return_inverse=True))


def unique_values(x: TensorState, /):
    """Return the unique elements."""
    return sorting.unique(x)
