"""Dims: negative ones counted from the end, ranges checked, duplicates refused, all in one place."""

import functools
import math
from collections.abc import Callable, Sequence
from operator import index

import numpy as np

from backlight.errors import ArgumentError, DimError, ShapeError, ValueProblem


def normalise_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the start; a 0-d tensor counts as having one dim.

    Raises:
        IndexError: there is no such dim.
        TypeError: `dim` is not an integer.
    """
    try:
        number = index(dim)
    except TypeError:
        raise ArgumentError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
    count = ndim or 1
    if 0 <= number < count:
        return number
    if -count <= number < 0:
        return number + count
    if not -(2**63) <= number < 2**63:
        raise ValueProblem("Overflow when unpacking long long: a dim has at most 64 bits")
    raise DimError(
        f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {number})\n"
        f"  The tensor has {ndim} dims: count them from 0, or from -1 backwards"
    )


def normalise_dims(dims: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return each of `dims` (an int or a sequence of ints) counted from the start.

    Raises:
        RuntimeError: a dim is named twice.
    """
    if isinstance(dims, (int, np.integer)):
        return (normalise_dim(dims, ndim),)
    if isinstance(dims, str):
        raise ArgumentError(
            f"argument 'dim' must be tuple of ints, not str; got {dims!r}: backlight's dims have no names"
        )
    if dims.__class__ is not tuple:
        check_iterable(dims)
    found = tuple([normalise_dim(dim, ndim) for dim in dims])
    if len(set(found)) != len(found):
        twice = next(dim for dim in found if found.count(dim) > 1)
        raise ShapeError(
            f"dim {twice} appears multiple times in the list of dims\n  Name each dim once, got {tuple(dims)}"
        )
    return found


def check_iterable(values: Sequence[int]) -> None:
    """Raise PyTorch's error for an argument that is no list; iterating over a mere `__getitem__` may never end.

    Raises:
        TypeError: it has no `__iter__`.
    """
    if not hasattr(type(values), "__iter__") or getattr(values, "ndim", None) == 0:
        raise ArgumentError(f"argument 'dim' must be tuple of ints, not {type(values).__name__}")


def one_or_several(values: int | Sequence[int]) -> tuple:
    """Return integers that a caller gave as one, be it Python's, NumPy's or a tensor of no dims, or as a sequence."""
    if isinstance(values, (int, np.integer)) or getattr(values, "ndim", None) == 0:
        return (index(values),)
    check_iterable(values)
    return tuple(values)


def reduced_dims(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return the dims to reduce over: all of them for None or an empty sequence."""
    if dims.__class__ is int and -ndim <= dims < ndim:
        return (dims % ndim,)
    if dims is None or (not isinstance(dims, (int, np.integer)) and len(dims) == 0):
        return tuple(range(ndim))
    found = normalise_dims(dims, ndim)
    return found if ndim else ()


def kept_shape(shape: Sequence[int], dims: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return what is left of `shape` after a reduction over `dims` that keeps them, as sizes of 1."""
    reduced = reduced_dims(dims, len(shape))
    return tuple([1 if dim in reduced else size for dim, size in enumerate(shape)])


def reduced_count(shape: Sequence[int], dims: int | Sequence[int] | None) -> int:
    """Return how many elements a reduction over `dims` puts into one."""
    count = 1
    for dim in reduced_dims(dims, len(shape)):
        count *= shape[dim]
    return count


def flat_places(indices: np.ndarray, shape: Sequence[int], dim: int):
    """Return where the elements that `indices` names along `dim` lie in an array of `shape`, counted row by row.

    Shapes: (elements before dim, indices along dim), with a third size for the elements after dim if there are any.
    """
    before, inner = math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
    rows = np.arange(before) * (shape[dim] * inner)
    if inner == 1:
        return indices.reshape(before, -1 if indices.size else 0) + rows[:, None]
    columns = indices.reshape(before, -1 if indices.size else 0, inner)
    return columns * inner + rows[:, None, None] + np.arange(inner)


NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def with_numpy_names(function: Callable):
    """Accept `axis` and `keepdims` as a function's `dim` and `keepdim`, as PyTorch does."""

    @functools.wraps(function)
    def named(*args, **kwargs):
        if kwargs and not kwargs.keys().isdisjoint(NUMPY_NAMES):
            for name in NUMPY_NAMES.keys() & kwargs.keys():
                if NUMPY_NAMES[name] in kwargs:  # an internal error, of which dispatch/arguments makes PyTorch's
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
            kwargs = {NUMPY_NAMES.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return named
