"""COO arrays: the coordinates and values of a tensor's non-zero elements, and the arithmetic on them.

NOTE [The sparse layout]
A tensor of layout `sparse_coo` has a `SparseArray` in `_data`, where others have NumPy's array. Entry number i of it is
`values[i]`, a number or, with dense dims, an array, at the coordinates `indices[:, i]`; entries at the same coordinates
add up. A `SparseArray` is no array to NumPy: whatever would read it as one is refused in PyTorch's words, so nothing is
made dense unless `to_dense` is called. The pass carries sparse gradients as it carries arrays; sums of two gradients
are sums of COO arrays, or dense if one of them is. Calls with a sparse tensor are dispatched to the rules in
tensor/sparse/calls.py; an op without one is refused.

Rows are compared by their keys: the place of a row's coordinates in the order of the sparse dims.
"""

from collections.abc import Callable

import numpy as np

from backlight.errors import BacklightError, ShapeError, UnsupportedError
from backlight.kernels.reduction.sorting import sums_by_index

ADD_DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."


class _SparseUse:
    """Whether a COO array was ever made, and what is then called once."""

    __slots__ = ("begun", "listener")

    def __init__(self):
        self.begun = False
        self.listener: Callable[[], None] = int

    def begin(self) -> None:
        """Note the first COO array."""
        self.begun = True
        self.listener()


sparse_use = _SparseUse()


def no_kernel(name: str, backend: str = "SparseCPU") -> BacklightError:
    """Return PyTorch's error for an op that has no sparse form, or, on the CPU, only a sparse one."""
    advice = (
        ".to_dense() first, if the dense tensor fits into memory" if backend == "SparseCPU" else ".to_sparse() first"
    )
    return UnsupportedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be because the operator "
        f"doesn't exist for this backend; call {advice}"
    )


class SparseArray:
    """An array of which only the entries that may differ from 0 are kept; see NOTE [The sparse layout]."""

    __slots__ = ("indices", "values", "shape", "coalesced")

    def __init__(self, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], coalesced: bool = False):
        if not sparse_use.begun:
            sparse_use.begin()
        self.indices = indices  # (sparse dims, entries), int64
        self.values = values  # (entries, *dense dims)
        self.shape = tuple(shape)
        self.coalesced = coalesced or indices.shape[1] < 2

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """How many dims there are, sparse and dense."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the dense array would have."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        """How many bytes an element has."""
        return self.values.itemsize

    def keys(self) -> np.ndarray:
        """Return the place of each entry's coordinates in the order of the sparse dims."""
        return keys_of(self.indices, self.shape)

    def with_values(self, values: np.ndarray) -> "SparseArray":
        """Return an array of other values at the same coordinates."""
        made = SparseArray(self.indices, values, self.shape)
        made.coalesced = self.coalesced
        return made

    def copy(self) -> "SparseArray":
        """Return a copy that shares no memory."""
        made = self.with_values(np.array(self.values))
        made.indices = np.array(self.indices)
        return made

    def astype(self, kind: np.dtype, copy: bool = True) -> "SparseArray":
        """Return the array in another dtype."""
        return self.with_values(self.values.astype(kind, copy=copy))

    def coalesce(self) -> "SparseArray":
        """Return the entries in order, those at the same coordinates summed."""
        if self.coalesced:
            return self
        keys, places = np.unique(self.keys(), return_inverse=True)
        return SparseArray(coordinates(keys, self), sums_at(self.values, places, len(keys)), self.shape, True)

    def to_dense(self) -> np.ndarray:
        """Return a dense array."""
        return self.add_to(np.zeros(self.shape, self.dtype))

    def add_to(self, dense: np.ndarray) -> np.ndarray:
        """Add the entries to a dense array, in place."""
        if self.indices.shape[1]:
            entries = self.coalesce()
            places = tuple(entries.indices)
            dense[places] = dense[places] + entries.values if places else dense + entries.values[0]
        return dense

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Return the values at keys, 0 where there is no entry."""
        entries = self.coalesce()
        own = entries.keys()
        found = np.zeros((len(keys), *entries.values.shape[1:]), self.dtype)
        if len(own):
            places = np.minimum(np.searchsorted(own, keys), len(own) - 1)
            there = own[places] == keys
            found[there] = entries.values[places[there]]
        return found

    def __neg__(self) -> "SparseArray":
        return self.with_values(-self.values)

    def __add__(self, other):
        if isinstance(other, SparseArray):
            return merged(self, other)
        return self.add_to(np.array(other, np.result_type(other, self.dtype)))

    __radd__ = __add__  # only a pass adds a dense gradient to a sparse one, or the other way

    def __mul__(self, other):
        if isinstance(other, SparseArray):
            if self.shape != other.shape or len(self.indices) != len(other.indices):
                raise ShapeError(
                    "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of "
                    f"sparse dimensions, and shape of sparse dimensions; got {list(self.shape)} and {list(other.shape)}"
                )
            pattern, factor = (self, other) if other.coalesced or not self.coalesced else (other, self)
            found = pattern.with_values(pattern.values * factor.at(pattern.keys()))
            return _where_both(found, factor)
        if np.ndim(other):
            return self.with_values(self.values * values_at(broadcast_to(other, self.shape), self))
        return self.with_values(self.values * other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if np.ndim(other):
            raise ShapeError(
                "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
                f"{list(np.shape(other))} for divisor)"
            )
        return self.with_values(self.values / other)

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None):
        raise UnsupportedError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs, **options):
        if method == "__call__" and not options and ufunc in (np.add, np.multiply):  # of a dense gradient and this one
            left, right = inputs
            return self + left if ufunc is np.add else right * left if isinstance(right, SparseArray) else left * right
        raise no_kernel(ufunc.__name__)

    def __array_function__(self, function: Callable, types: object, args: tuple, kwargs: dict):
        raise no_kernel(function.__name__)


def is_sparse(value: object) -> bool:
    """Tell whether an array, or a tensor, is in the sparse layout."""
    try:
        return value.__class__ is SparseArray or getattr(value, "_data", None).__class__ is SparseArray
    except BacklightError:  # a tensor that has no values yet, or never
        return False


def gradient_sum(present, grad):
    """Return the sum of two gradients, arrays or tensors: a sparse one is added to what came later, as in PyTorch."""
    return grad + present if is_sparse(present) else present + grad


def check_same_size(name: str, own: tuple, other: tuple) -> None:
    """Raise PyTorch's error unless two shapes are the same."""
    if tuple(own) != tuple(other):
        raise ShapeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(own)} != {list(other)}; sparse tensors "
            "do not broadcast"
        )


def broadcast_to(dense: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a dense array broadcast to the shape of a sparse one, which itself does not broadcast."""
    try:
        return np.broadcast_to(dense, shape)
    except ValueError:
        raise ShapeError(f"mul(sparse, dense): {list(dense.shape)} does not broadcast to {list(shape)}") from None


def keys_of(indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the place of coordinates in the order of the first dims of a shape."""
    if not len(indices):
        return np.zeros(indices.shape[1], np.int64)
    keys = indices[0]
    for row, size in zip(indices[1:], shape[1:]):
        keys = keys * size + row
    return keys


def coordinates(keys: np.ndarray, like: SparseArray) -> np.ndarray:
    """Return the coordinates of keys in the sparse dims of an array."""
    dims = len(like.indices)
    if not dims:
        return np.zeros((0, len(keys)), np.int64)
    return np.array(np.unravel_index(keys, like.shape[:dims]), np.int64).reshape(dims, len(keys))


def sums_at(values: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Return rows of zeros with each value added at its place."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 2 and values.ndim > 1:
        return sums_by_index(np.ascontiguousarray(values), np.ascontiguousarray(places, np.int64), count)
    sums = np.zeros((count, *values.shape[1:]), values.dtype)
    np.add.at(sums, places, values)
    return sums


def values_at(dense: np.ndarray, pattern: SparseArray) -> np.ndarray:
    """Return the elements of a dense array where another has its entries."""
    places = tuple(pattern.indices)
    return dense[places] if places else np.repeat(dense[None], pattern.indices.shape[1], 0)


def masked(array: np.ndarray | SparseArray, pattern: SparseArray) -> SparseArray:
    """Return the elements of an array at the entries of another, each as often as it has entries there."""
    found = array.at(pattern.keys()) if is_sparse(array) else values_at(array, pattern)
    return pattern.with_values(found)


def _where_both(found: SparseArray, other: SparseArray) -> SparseArray:
    """Leave out the entries where another array has none."""
    kept = np.isin(found.keys(), other.keys())
    return SparseArray(found.indices[:, kept], found.values[kept], found.shape, found.coalesced)


def merged(first: SparseArray, second: SparseArray, alpha: float = 1) -> SparseArray:
    """Return first + alpha · second, the entries in PyTorch's order: two lists merged, equal heads summed."""
    check_same_size("add", first.shape, second.shape)
    kind = np.result_type(first.dtype, second.dtype)
    if kind.kind == "b":
        raise UnsupportedError("\"cadd_sparse\" not implemented for 'Bool'; convert one with .int()")
    if not second.indices.shape[1]:
        return first.astype(kind)
    scaled = second if alpha == 1 else second.with_values(second.values * second.dtype.type(alpha))
    if not first.indices.shape[1]:
        return SparseArray(
            scaled.indices, scaled.values.astype(kind, copy=scaled is second), second.shape, second.coalesced
        )
    if len(first.indices) != len(second.indices):
        raise ShapeError(
            "add: expected 'self' and 'other' to have same density, but 'self' has "
            f"{len(first.indices)} sparse dimensions while 'other' has {len(second.indices)} sparse dimensions"
        )
    of_first, of_second, count = merge_places(first.keys(), second.keys())
    indices = np.empty((len(first.indices), count), np.int64)
    indices[:, of_second], indices[:, of_first] = second.indices, first.indices
    values = np.zeros((count, *first.values.shape[1:]), kind)
    values[of_first] = first.values
    values[of_second] += scaled.values
    return SparseArray(indices, values, first.shape, first.coalesced and second.coalesced)


def merge_places(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return where the items of two lists come in their merge, and its length; equal heads come at one place."""
    own, other = first.tolist(), second.tolist()
    of_first, of_second = [], []
    count = i = j = 0
    while i < len(own) and j < len(other):
        ahead, behind = own[i], other[j]
        if ahead <= behind:
            of_first.append(count)
            i += 1
        if behind <= ahead:
            of_second.append(count)
            j += 1
        count += 1
    of_first.extend(range(count, count + len(own) - i))
    of_second.extend(range(count, count + len(other) - j))
    return np.array(of_first, np.int64), np.array(of_second, np.int64), count + len(own) - i + len(other) - j
