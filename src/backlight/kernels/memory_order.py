"""In which order elements lie in memory: that of copies and results, and that in which PyTorch draws random numbers.

NOTE [Memory order of results]
An op declares with `layout=` how its results lie in memory: a name in `LAYOUTS`. Its generated function is made twice:
with lines that copy a result which lies otherwise, and without. The core calls the one without where the arrays of all
arguments lie row by row, as nearly all do; then the forward must return such arrays, too.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from backlight.errors import GraphError
from backlight.kernels.native import compiled
from backlight.layouts import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format

ndarray = np.ndarray
CHANNELS_LAST = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}  # dims, the outermost first
FORMAT_OF_DIMS = {len(order): wanted for wanted, order in CHANNELS_LAST.items()}


def _row_major(*arrays: object) -> bool:
    """Tell whether all arrays lie row by row, with the strides of dims of size 1 too; what is no array does."""
    return all(
        one.__class__ is not ndarray
        or not one.size
        or (
            one.flags.c_contiguous
            and [one.itemsize * step for step in format_strides(one.shape, None)] == [*one.strides]
        )
        for one in arrays
    )


row_major = _row_major if compiled is None else compiled.row_major


def is_contiguous_in(array: ndarray, wanted: memory_format) -> bool:
    """Tell whether an array lies densely in the order of a format; dims of size 1 may have any stride."""
    if wanted not in CHANNELS_LAST:
        return array.flags.c_contiguous
    order = CHANNELS_LAST[wanted]
    return array.ndim == len(order) and array.transpose(order).flags.c_contiguous


def is_dense(array: ndarray) -> bool:
    """Tell whether the elements fill their memory without gaps or overlaps, in any order."""
    expected = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape)):
        if size != 1:
            if stride != expected and array.size:
                return False
            expected *= size
    return True


def suggested_format(array: ndarray) -> memory_format:
    """Return the format that the strides suggest, as PyTorch's `suggest_memory_format`: by default contiguous."""
    wanted = FORMAT_OF_DIMS.get(array.ndim)
    return contiguous_format if wanted is None or not _like_channels_last(array, wanted) else wanted


def _like_channels_last(array: ndarray, wanted: memory_format) -> bool:
    """Tell whether strides rise from the channel outwards; where dims of size 1 leave it open, they do not."""
    shape, strides, least = array.shape, array.strides, 0
    if strides[1] == 0 or not array.size:
        return False
    for dim in reversed(CHANNELS_LAST[wanted]):
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True


def iteration_order(shape: Sequence[int], arrays: Sequence[ndarray]) -> list[int]:
    """Return the dims, the outermost first, as TensorIterator sorts those of operands that broadcast to `shape`.

    The first operand in which two dims have different strides decides; stride 0, where an operand is repeated, says
    nothing. Of one array it is the order of a copy (`infer_dense_strides`).
    """
    return order_of_strides(
        shape,
        [
            [
                0 if place < 0 or one.shape[place] != size else one.strides[place]
                for place, size in enumerate(shape, one.ndim - len(shape))
            ]
            for one in arrays
        ],
    )


def order_of_strides(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> list[int]:
    """Return `iteration_order` of operands that are given by their strides in each dim of `shape`."""
    order = list(reversed(range(len(shape))))  # inner first
    for end in range(1, len(shape)):
        moved = end
        for place in range(end - 1, -1, -1):
            found = _compare(order[place], order[moved], shape, operands)
            if found < 0:
                break
            if found > 0:
                order[place], order[moved] = order[moved], order[place]
                moved = place
    return order[::-1]


def _compare(inner: int, outer: int, shape: Sequence[int], operands: Sequence[Sequence[int]]) -> int:
    """Return 1 if two dims must be swapped, -1 if not, 0 if no operand tells."""
    for strides in operands:
        one, other = strides[inner], strides[outer]
        if one and other:
            if one != other:
                return 1 if one > other else -1
            if shape[inner] > shape[outer]:
                return 1
    return 0


def in_order(shape: Sequence[int], kind: np.dtype, order: Sequence[int], make: Callable = np.empty) -> ndarray:
    """Return a new array whose dims lie in memory in the given order, the outermost first."""
    if [*order] == [*range(len(shape))]:
        return make(shape, kind)
    return make([shape[dim] for dim in order], kind).transpose(np.argsort(order))


def model_of(array: ndarray, kind: np.dtype | None = None, make: Callable = np.empty) -> ndarray:
    """Return a new array with the strides of PyTorch's `empty_like`: the same, or dense ones in the same order."""
    kind = array.dtype if kind is None else kind
    if array.__class__ is not ndarray or row_major(array):
        return make(array.shape, kind)
    if not is_dense(array) or not array.size:
        return in_order(array.shape, kind, iteration_order(array.shape, [array]), make)
    return _with_strides_of(array, make(array.size, kind))


def _with_strides_of(dense: ndarray, flat: ndarray) -> ndarray:
    """Return elements given as they lie in memory, as an array with the shape and strides of a dense one."""
    strides = [stride // dense.itemsize * flat.itemsize for stride in dense.strides]
    return ndarray(dense.shape, flat.dtype, flat.view(np.uint8), 0, strides)


def empty_in(shape: Sequence[int], kind: np.dtype, wanted: memory_format | None, make: Callable = np.empty) -> ndarray:
    """Return a new array in a memory format, by default contiguous.

    Raises:
        RuntimeError: the format is that of another number of dims, or `preserve_format`.
    """
    return in_order(shape, kind, _order_of(shape, wanted), make)


def _order_of(shape: Sequence[int], wanted: memory_format | None) -> Sequence[int]:
    if wanted is None or wanted is contiguous_format:
        return range(len(shape))
    if wanted not in CHANNELS_LAST:
        raise GraphError("unsupported memory format Preserve; pass torch.contiguous_format or torch.channels_last")
    order = CHANNELS_LAST[wanted]
    if len(shape) != len(order):
        raise GraphError(f"required rank {len(order)} tensor to use {wanted.name} format; the shape is {list(shape)}")
    return order


def format_strides(shape: Sequence[int], wanted: memory_format | None) -> list[int]:
    """Return the strides in elements of a new array in a memory format, by default contiguous.

    Raises:
        RuntimeError: the format is that of another number of dims, or `preserve_format`.
    """
    order, strides, step = _order_of(shape, wanted), [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim], step = step, step * max(shape[dim], 1)
    return strides


def empty_like_in(
    array: ndarray, wanted: memory_format | None, kind: np.dtype | None = None, make: Callable = np.empty
) -> ndarray:
    """Return a new array shaped as another, in a memory format; None and `preserve_format` keep the order."""
    if wanted is None or wanted is preserve_format:
        return model_of(array, kind, make)
    return empty_in(array.shape, array.dtype if kind is None else kind, wanted, make)


def copied_in(array: ndarray, wanted: memory_format | None, kind: np.dtype | None = None) -> ndarray:
    """Return a copy of an array in a memory format, and in another dtype."""
    copy = empty_like_in(array, wanted, kind)
    copy[...] = array
    return copy


def converted(array: ndarray | np.generic, kind: np.dtype) -> ndarray | np.generic:
    """Return an array in another dtype, in the same order in memory."""
    return array.astype(kind) if row_major(array) else copied_in(array, None, kind)


def viewed(array: ndarray, shape: Sequence[int]) -> ndarray:
    """Return the same memory in another shape, with PyTorch's strides in dims of size 1 too (`computeStride`).

    Raises:
        ValueError: the memory does not allow it.
    """
    out = array.reshape(shape, copy=False)
    if out.shape != shape and any(size < -1 for size in shape):  # NumPy takes each as the size that is left
        raise ValueError("a size is at least -1")
    if not array.ndim or not array.size or 1 not in out.shape or row_major(array, out):
        return out
    strides, dim, step = [*out.strides], out.ndim - 1, array.strides[-1]
    count = 1  # elements of what is one piece of memory
    for place in range(array.ndim - 1, -1, -1):
        count *= array.shape[place]
        if place and (array.shape[place - 1] == 1 or array.strides[place - 1] == count * step):
            continue
        seen = 1
        while dim >= 0 and (seen < count or out.shape[dim] == 1):
            strides[dim] = seen * step
            seen *= out.shape[dim]
            dim -= 1
        count, step = 1, array.strides[place - 1]
    return strided(out, out.shape, strides)


def strided(array: ndarray, shape: Sequence[int], strides: Sequence[int]) -> ndarray:
    """Return the memory of an array by shape and strides, those in bytes."""
    if array.dtype.kind == "W":  # complex32, for which NumPy's protocols have no name
        return as_strided(array.view(np.uint32), shape, strides).view(array.dtype)
    return as_strided(array, shape, strides)


def placed(data: ndarray, target: ndarray) -> ndarray:
    """Return the values in memory laid out as the target: as they are, or written into it."""
    if data.strides == target.strides:
        return data
    target[...] = data
    return target


def _as_elementwise(data: ndarray, *arrays: object) -> ndarray:
    """Lay out a result as TensorIterator does: in the order of the operands, the first ones first."""
    operands = [one for one in arrays if one.__class__ is ndarray or isinstance(one, np.generic)]
    shape, kind = data.shape, data.dtype
    if any(one.shape != shape for one in operands):
        return placed(data, in_order(shape, kind, iteration_order(shape, operands)))
    for wanted in (contiguous_format, channels_last):  # TensorIterator does not look for channels_last_3d
        if all(is_contiguous_in(one, wanted) for one in operands):
            return placed(data, empty_in(shape, kind, wanted))
    first = operands[0]
    if is_dense(first) and all(one.strides == first.strides for one in operands):
        return placed(data, model_of(first, kind))
    return placed(data, in_order(shape, kind, iteration_order(shape, operands)))


def _as_reordered(data: ndarray, first: ndarray) -> ndarray:
    """Lay out the result of an operand and a number: in the operand's order, also where it lies row by row."""
    return placed(data, in_order(data.shape, data.dtype, iteration_order(data.shape, [first])))


def in_rows(data: ndarray, *_arrays: object) -> ndarray:
    """Lay out a result row by row."""
    return data if row_major(data) else placed(data, np.empty(data.shape, data.dtype))


def _as_preserved(data: ndarray, first: ndarray, *_arrays: object) -> ndarray:
    """Lay out a result in the order of the first operand's dims: with its strides, if it has its shape."""
    if data.shape == first.shape:
        return placed(data, model_of(first, data.dtype))
    if data.ndim != first.ndim:
        return in_rows(data)
    return placed(data, in_order(data.shape, data.dtype, iteration_order(first.shape, [first])))


def _as_suggested(data: ndarray, *arrays: object) -> ndarray:
    """Lay out a result in the memory format that the first operand suggests."""
    wanted = suggested_format(arrays[0])
    return placed(data, empty_in(data.shape, data.dtype, wanted if wanted is FORMAT_OF_DIMS.get(data.ndim) else None))


def _as_convolved(data: ndarray, *arrays: object) -> ndarray:
    """Lay out a result in the channels-last format that the input or the weight suggests."""
    formats = [suggested_format(one) for one in arrays[:2]]
    wanted = FORMAT_OF_DIMS.get(data.ndim)
    if data.ndim == 5 and (data.dtype == np.float64 or (data.dtype == np.float32 and _is_small(arrays[0]))):
        wanted = None  # PyTorch computes these without oneDNN
    return placed(data, empty_in(data.shape, data.dtype, wanted if wanted in formats else None))


def _is_small(volumes: ndarray) -> bool:
    return volumes.shape[0] == 1 and math.prod(volumes.shape[:4]) <= 20480


def _as_joined(data: ndarray, *arrays: object) -> ndarray:
    """Lay out a result in the channels-last format that all operands suggest, else row by row."""
    formats = {suggested_format(one) for one in arrays}
    return placed(data, empty_in(data.shape, data.dtype, formats.pop() if len(formats) == 1 else None))


LAYOUTS: dict[str, Callable[..., ndarray]] = {
    "elementwise": _as_elementwise,
    "reordered": _as_reordered,
    "rows": in_rows,
    "preserved": _as_preserved,
    "suggested": _as_suggested,
    "convolved": _as_convolved,
    "joined": _as_joined,
}


def outer_first(array: np.ndarray) -> list[int]:
    """Return the dims by falling stride: the outermost first."""
    return sorted(range(array.ndim), key=lambda dim: -array.strides[dim])


def in_memory_order(array: np.ndarray, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return `draw(count)` in the shape of an array, filled in the order in which its elements lie in memory."""
    if row_major(array):
        return draw(array.size).reshape(array.shape)
    if array.size and is_dense(array):
        return _with_strides_of(array, draw(array.size))
    order = outer_first(array)
    shape = [array.shape[dim] for dim in order]
    return draw(array.size).reshape(shape).transpose(np.argsort(order))


def over_memory(array: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return `compute(values)`, where values are flat and in the order of memory, laid out as the array is."""
    if array.flags.c_contiguous:
        return compute(array.reshape(-1)).reshape(array.shape)
    order = outer_first(array)
    arranged = array.transpose(order)
    return compute(arranged.reshape(-1)).reshape(arranged.shape).transpose(np.argsort(order))
