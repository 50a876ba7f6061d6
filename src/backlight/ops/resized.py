"""Tensors that take on another size, with what their memory holds."""

import math

import numpy as np

from backlight.errors import GraphError, ShapeError
from backlight.graph.state import writable
from backlight.ops.inplace import count_write, refuse_writing
from backlight.ops.striding import storage_offset_of, strided_memory
from backlight.sizes import size_from


def resize_(self, *sizes, memory_format=None):
    """Take on another size: the first elements in memory stay, new ones are undefined; return the tensor.

    Raises:
        RuntimeError: the tensor requires grad, or a size is negative.
    """
    shape = tuple(size_from("resize_", sizes))
    if self._edge is not None:
        raise GraphError("cannot resize variables that require grad; resize a detached one, or make a new tensor")
    if any(size < 0 for size in shape):
        raise ShapeError(f"resize_() takes sizes from 0 up, got {list(shape)}")
    refuse_writing(self)
    self._data = _memory_in(self, shape)
    count_write(self, "resize_")
    return self


def _memory_in(tensor, shape: tuple) -> np.ndarray:
    """Return the memory that a tensor shows, row by row in a shape; where there is too little, a larger copy."""
    base = writable(tensor if tensor._view is None else tensor._view[0])
    count = math.prod(shape)
    if storage_offset_of(tensor) + count <= base.size:
        steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
        return strided_memory(tensor, shape, steps, None)
    found = np.empty(count, base.dtype)
    held = base.ravel(order="K")[storage_offset_of(tensor) :]
    found[: held.size] = held
    return found.reshape(shape)


def resize_as_(self, the_template, *, memory_format=None):
    """Take on the size of another tensor, as `resize_` does; return the tensor."""
    return resize_(self, the_template._data.shape)
