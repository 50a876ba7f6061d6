"""`Size`, the tuple of ints that a tensor's shape is."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from math import prod
from operator import index

import numpy as np

from backlight.errors import ArgumentError, ShapeError, StorageError
from backlight.settings import fills_memory

Shape = tuple[int, ...]  # for annotations
MOST_BYTES = 2**63 - 1
MOST_DIMS = 64  # of an array, in NumPy
FEW = 2**20  # an array of so many elements is simply made
TOO_LARGE = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "iterator is too large",
)


class Size(tuple):
    """A tensor's shape: a tuple of ints with `numel()`, printed as PyTorch prints it."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()):
        """Make a shape of ints, or of what counts as one.

        Raises:
            TypeError: something in it is no int.
        """
        if isinstance(sizes, Size):
            return tuple.__new__(cls, sizes)
        found = tuple(sizes)
        for size in found:
            if type(size) is not int:
                break
        else:
            return tuple.__new__(cls, found)
        return tuple.__new__(cls, [_size_at(*each) for each in enumerate(found)])

    def numel(self) -> int:
        """Return how many elements a tensor of this shape has."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return size_of_ints(found) if isinstance(index, slice) else found

    def __add__(self, other: tuple[int, ...]):
        if not isinstance(other, tuple):
            raise ArgumentError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]):
        if not isinstance(other, tuple):
            kind = type(other).__name__
            raise ArgumentError(f'can only concatenate {kind} (not "torch.Size") to {kind}')
        return Size(other + tuple(self))

    def __mul__(self, times: int):
        return size_of_ints(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))


size_of_ints = partial(tuple.__new__, Size)  # without a look at each: for shapes that tensors have


def _size_at(place: int, size: object) -> object:
    """Return an int for what counts as one; what stands for a size, such as a batch's, stays."""
    if isinstance(size, (float, complex, str, bytes)) or size is None:
        raise ArgumentError(f"torch.Size() takes an iterable of 'int' (item {place} is '{type(size).__name__}')")
    try:
        return index(size)
    except TypeError:
        return size


def size_from(function: str, sizes: tuple) -> tuple[int, ...]:
    """Return the shape that `function(*sizes)` was given: as several ints, or as one tuple or list of them.

    Raises:
        TypeError: there is none, or something in it is no int.
        RuntimeError: a size is negative.
    """
    if not sizes:
        raise ArgumentError(f'{function}() missing 1 required positional arguments: "size"')
    spread = len(sizes) > 1 or not isinstance(sizes[0], (tuple, list))
    found = sizes if spread else sizes[0]
    shape = []
    for place, size in enumerate(found):
        try:
            if isinstance(size, bool):
                raise TypeError("True is no size")
            shape.append(index(size))
        except TypeError:
            raise _no_size(function, size, place, spread) from None
    negative = [size for size in shape if size < 0]
    if negative:
        if function == "zeros":
            raise ShapeError(f"zeros: Dimension size must be non-negative. Got {shape}")
        raise ShapeError(f"Trying to create tensor with negative dimension {negative[0]}: {shape}; sizes are 0 or more")
    return tuple(shape)


def _no_size(function: str, size: object, place: int, spread: bool) -> ArgumentError:
    kind, start = type(size).__name__, f"{function}(): argument 'size'"
    if place:
        return ArgumentError(
            f"{start} failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    if spread:
        return ArgumentError(f"{start} (position 1) must be tuple of ints, not {kind}")
    return ArgumentError(f"{start} (position 1) must be tuple of ints, but found element of type {kind} at pos 0")


def sizes_given(arguments: tuple) -> tuple:
    """Return sizes (or dims) that a caller gave one by one, or as one sequence."""
    if len(arguments) == 1:
        first = arguments[0]
        if isinstance(first, (tuple, list)):
            return tuple(first)
    return arguments


def spread_sizes(arguments: tuple, named: Sequence[int] | None, function: str, name: str) -> tuple:
    """Return sizes (or dims) that a caller gave one by one, as one sequence, or by the parameter's name.

    Raises:
        TypeError: there are none.
    """
    if not arguments and named is None:
        raise ArgumentError(f'{function}() missing 1 required positional arguments: "{name}"')
    return sizes_given(arguments or (named,))


def broadcast(*shapes: tuple) -> tuple:
    """Return the shape that arrays of these shapes broadcast to.

    Raises:
        RuntimeError: two sizes meet that differ and are not 1.
    """
    found = ()
    for shape in shapes:
        dims = max(len(found), len(shape))
        left, right = (1,) * (dims - len(found)) + found, (1,) * (dims - len(shape)) + shape
        for dim in reversed(range(dims)):
            if left[dim] != right[dim] and 1 not in (left[dim], right[dim]):
                raise ShapeError(
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) at "
                    f"non-singleton dimension {dim}; the shapes are {list(found)} and {list(shape)}"
                )
        found = tuple(b if a == 1 else a for a, b in zip(left, right))
    return found


def check_storage(shape: Sequence[int], itemsize: int) -> None:
    """Raise PyTorch's error where an array of this shape has more bytes than 64 bits count."""
    if prod(shape) * itemsize > MOST_BYTES:
        raise storage_error(shape, itemsize)


def storage_error(shape: Sequence[int], itemsize: int) -> StorageError:
    """Return PyTorch's error for an array of this shape that NumPy could not make."""
    count = prod(size or 1 for size in shape) * itemsize
    if count > MOST_BYTES:
        return StorageError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return StorageError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        f"allocate {count} bytes. Error code 12 (Cannot allocate memory)\n  The shape is {list(shape)}"
    )


def allocated(make: Callable, shape: Sequence[int], kind: np.dtype, *options):
    """Return `make(shape, kind, *options)`, one of NumPy's functions that make an array."""
    try:
        return make(shape, kind, *options)
    except (MemoryError, ValueError, OverflowError):
        if len(shape) > MOST_DIMS:
            raise ShapeError(f"only tensors with up to {MOST_DIMS} dims are supported; NumPy has no more") from None
        raise storage_error(shape, kind.itemsize) from None


def require_memory(shape: Sequence[int], kind: np.dtype) -> None:
    """Raise PyTorch's error for an array that could not be made, before anything is computed for it."""
    if prod(shape) > FEW:
        check_storage(shape, kind.itemsize)
        allocated(np.empty, shape, kind)


def check_work(shape: Sequence[int], kind: np.dtype, most: int = 2**27) -> None:
    """Raise PyTorch's error for lack of memory where Python would make these many elements one by one, for minutes."""
    if prod(shape) > most:
        raise storage_error(shape, kind.itemsize)


def storage_errors(function: Callable):
    """Return a function that raises PyTorch's error where an array that NumPy makes in it is too large."""

    @wraps(function)
    def sized(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (MemoryError, ValueError) as problem:
            raise as_storage_error(problem) from None

    return sized


def as_storage_error(problem: Exception, shape: Sequence[int] | None = None) -> Exception:
    """Return PyTorch's error for NumPy's about an array that is too large, or the problem itself if it is another.

    Args:
        shape: of the array, where that is known; NumPy does not say it where the count of bytes overflows.
    """
    if isinstance(problem, StorageError):
        return problem
    if isinstance(problem, MemoryError):
        shape, kind = getattr(problem, "shape", None), getattr(problem, "dtype", None)
        if shape is not None and kind is not None:
            return storage_error(shape, kind.itemsize)
        return StorageError(f"DefaultCPUAllocator: can't allocate memory: {problem or 'it has run out'}")
    if isinstance(problem, ValueError) and str(problem).startswith(TOO_LARGE):
        known = f"with sizes={list(shape)}" if shape is not None else f"in NumPy: {problem}"
        return StorageError(f"Storage size calculation overflowed {known}")
    return problem


def unwritten(shape: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Return an uninitialised array; for bools, whose bytes must be 0 or 1, zeros.

    Where PyTorch fills new memory (see `settings.fills_memory`): NaN, the largest integer, or True.
    """
    if not fills_memory():
        return allocated(np.zeros if kind.kind == "b" else np.empty, shape, kind)
    array = allocated(np.empty, shape, kind)
    array.fill(np.iinfo(kind).max if kind.kind in "iu" else kind.kind == "b" or np.nan)
    return array
