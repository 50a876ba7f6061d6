"""In which order elements lie in memory: the order in which PyTorch draws random numbers for them."""

from collections.abc import Callable

import numpy as np


def model_of(array: np.ndarray) -> np.ndarray:
    """Return an array whose strides order the dims as PyTorch's `empty_like` does; it may be the array itself.

    NumPy's `empty_like` keeps the order too, but puts dims that are expanded (stride 0) innermost; PyTorch leaves them
    where they stand. The values of what is returned mean nothing.
    """
    if 0 not in array.strides or array.size < 2:
        return array
    order = _as_they_stand(array)
    return np.empty([array.shape[dim] for dim in order], array.dtype).transpose(np.argsort(order))


def _as_they_stand(array: np.ndarray) -> list[int]:
    """Return the dims by falling stride, as PyTorch's `infer_dense_strides` sorts them; one of stride 0 stays."""
    order = list(reversed(range(array.ndim)))  # inner first
    for end in range(1, array.ndim):
        moved = end
        for place in range(end - 1, -1, -1):
            stride, other = (array.strides[order[one]] for one in (place, moved))
            if stride == 0 or other == 0 or stride == other:
                continue
            if stride < other:
                break
            order[place], order[moved] = order[moved], order[place]
            moved = place
    return order[::-1]


def outer_first(array: np.ndarray) -> list[int]:
    """Return the dims by falling stride: the outermost first."""
    return sorted(range(array.ndim), key=lambda dim: -array.strides[dim])


def in_memory_order(array: np.ndarray, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return `draw(count)` in the shape of an array, filled in the order in which its elements lie in memory."""
    if array.flags.c_contiguous:
        return draw(array.size).reshape(array.shape)
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
