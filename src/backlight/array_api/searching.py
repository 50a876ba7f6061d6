"""The standard's functions that find, choose and sort elements, and that make sets of them."""

from typing import NamedTuple

from backlight.engine.tensor_state import TensorState
from backlight.ops.elementwise import where_clamp
from backlight.ops.indexing import gather_scatter
from backlight.ops.reduction import extremes, sorting
from backlight.tensor.interop.numpy_shapes import take as taken

__all__ = ["argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis"]
__all__ += ["unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


def argmax(x, /, *, axis: int | None = None, keepdims: bool = False):
    """Return where the greatest elements are."""
    return extremes.argmax(x, axis, keepdims)


def argmin(x, /, *, axis: int | None = None, keepdims: bool = False):
    """Return where the least elements are."""
    return extremes.argmin(x, axis, keepdims)


def nonzero(x, /) -> tuple:
    """Return where elements are not 0, one tensor a dim."""
    return x.nonzero(as_tuple=True)


def searchsorted(x1, x2, /, *, side: str = "left", sorter=None):
    """Return where the elements of x2 belong in x1, which is in order or has a sorter."""
    return sorting.searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition, /, *choices):
    """Return elements of x1 where the condition holds, of x2 elsewhere; without them, the places where it does."""
    return where_clamp.where(condition, *choices) if choices else nonzero(condition)


def sort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """Return the elements in order."""
    return sorting.sort(x, axis, descending, stable=stable).values


def argsort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    """Return the places of the elements in their order."""
    return sorting.argsort(x, axis, descending, stable=stable)


def take(x, indices, /, *, axis: int | None = None):
    """Return slices at some places along an axis, which may be left out for one dim."""
    return taken(x, indices, 0 if axis is None and x._data.ndim == 1 else axis)


def take_along_axis(x, indices, /, *, axis: int = -1):
    """Return elements at places along an axis."""
    return gather_scatter.take_along_dim(x, indices, axis)


class UniqueAll(NamedTuple):
    """The distinct elements in order, where each first stands, where each element's is, and how many there are."""

    values: TensorState
    indices: TensorState
    inverse_indices: TensorState
    counts: TensorState


class UniqueCounts(NamedTuple):
    """The distinct elements in order, and how many there are."""

    values: TensorState
    counts: TensorState


class UniqueInverse(NamedTuple):
    """The distinct elements in order, and where each element's is."""

    values: TensorState
    inverse_indices: TensorState


def unique_all(x, /) -> UniqueAll:
    """Return the distinct elements, where they come from and how many there are."""
    values, inverse, counts = sorting.unique(x, return_inverse=True, return_counts=True)
    order = sorting.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[counts.cumsum(0) - counts], inverse, counts)


def unique_counts(x, /) -> UniqueCounts:
    """Return the distinct elements and how many there are."""
    return UniqueCounts(*sorting.unique(x, return_counts=True))


def unique_inverse(x, /) -> UniqueInverse:
    """Return the distinct elements and where each element's is."""
    return UniqueInverse(*sorting.unique(x, return_inverse=True))


def unique_values(x, /):
    """Return the distinct elements."""
    return sorting.unique(x)
