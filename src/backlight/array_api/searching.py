"""The standard's functions for searching, sorting, indexing and sets."""

from typing import NamedTuple

from backlight.engine.tensor_state import TensorState
from backlight.ops.elementwise import where_clamp
from backlight.ops.indexing import gather_scatter
from backlight.ops.reduction import extremes, sorting
from backlight.tensor.interop.numpy_counterparts import take as taken

__all__ = ["argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis"]
__all__ += ["unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


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
