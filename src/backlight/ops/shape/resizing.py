"""Tensors that take on another size, with what their memory holds."""

import math
from collections.abc import Sequence

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.observation import end_write
from backlight.engine.tensor_state import TensorState, memory_of, replace_memory, storage_of
from backlight.engine.views import shown_by_strides
from backlight.errors import GraphError, ShapeError
from backlight.kernels.memory_order import format_strides, suggested_format
from backlight.layouts import memory_format, preserve_format
from backlight.ops.inplace import begin_write, refuse_writing
from backlight.ops.shape.striding import storage_offset_of, strided_memory
from backlight.sizes import check_storage, size_from, unwritten


@composite_function
def resize_(self, *sizes, memory_format: memory_format | None = None):
    """Take on another size: the first elements in memory stay, new ones are undefined; return the tensor.

    Raises:
        RuntimeError: the tensor requires grad, or a size is negative.
    """
    shape = tuple(size_from("resize_", sizes))
    if self._edge is not None:
        raise GraphError("cannot resize variables that require grad; resize a detached one, or make a new tensor")
    if any(size < 0 for size in shape):
        raise ShapeError(f"resize_() takes sizes from 0 up, got {list(shape)}")
    strides = format_strides(shape, memory_format)
    refuse_writing(self, "resize_")
    begin_write(self, "resize_")
    if storage_offset_of(self) + math.prod(shape) <= memory_of(self).size:
        shown = strided_memory(self, shape, strides, None)
        if self._view is None:
            storage_of(self).memory = memory_of(self)  # what is beyond the new size stays, for a larger one later
        self._data = shown
    else:
        replace_memory(self, *_larger(self, shape, strides))
    end_write(self)
    return self


def _larger(tensor: TensorState, shape: tuple, strides: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return a part of a larger copy of a tensor's memory, from its first element on in a shape; and that copy."""
    held, offset = memory_of(tensor).ravel(order="K"), storage_offset_of(tensor)
    check_storage(shape, held.dtype.itemsize)
    memory = unwritten((offset + math.prod(shape),), held.dtype)
    memory[: held.size] = held
    return shown_by_strides(memory[offset:], shape, [step * memory.itemsize for step in strides]), memory


def resize_as_(self, the_template: TensorState, *, memory_format: memory_format | None = None):
    """Take on the size, for `preserve_format` also the format, of another tensor; see `resize_`."""
    template = the_template._data
    wanted = suggested_format(template) if memory_format is preserve_format else memory_format
    return resize_(self, template.shape, memory_format=wanted)
