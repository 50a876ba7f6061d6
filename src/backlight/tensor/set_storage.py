"""`Tensor.set_`: a tensor takes on the memory of another tensor, or of a storage."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.dispatch.observation import end_write
from backlight.engine.tensor_state import LEAF, TensorState, memory_of, replace_memory, wrap, writable
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.ops.inplace import begin_write, refuse_writing
from backlight.ops.linalg.matrix_products import small_name
from backlight.ops.shape.striding import strided_memory
from backlight.tensor.storages import TypedStorage, UntypedStorage


def show_memory(tensor, source: object, storage_offset: int, size, stride):
    """Replace the memory of a tensor, for `Tensor.set_`."""
    refuse_writing(tensor, "set_")
    if tensor._edge is LEAF:
        raise GraphError(
            "a leaf Variable that requires grad is being used in an in-place operation.\n  set_() has no derivative: "
            "call it inside torch.no_grad() on tensor.detach()"
        )
    if tensor._edge is not None:
        raise GraphError("set_() has no derivative: call it on tensor.detach()")
    if storage_offset < 0:
        raise ShapeError(f"Tensor: invalid storage offset {storage_offset}")
    if stride is not None and len(size) != len(stride):
        raise ShapeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    shown = _shown(tensor, source, storage_offset, size, stride)
    begin_write(tensor, "set_")
    replace_memory(tensor, *shown)
    end_write(tensor)
    return tensor


def _shown(tensor, source: object, offset: int, size, stride) -> tuple[np.ndarray, np.ndarray]:
    """Return a view of the source's memory, and the array that holds all of it."""
    kind = tensor._data.dtype
    if source is None:
        made = np.empty(0, kind)
        return made, made
    if isinstance(source, TypedStorage) and source._flat.dtype != kind:
        own, other = small_name(kind), source.dtype.old_name
        raise ShapeError(
            f"Expected a Storage of type {own} or an UntypedStorage, but got type {other} for argument 1 'storage'"
        )
    if isinstance(source, (TypedStorage, UntypedStorage)):
        flat = source._flat.view(np.uint8)
        flat = flat[: flat.size // kind.itemsize * kind.itemsize].view(kind)
        size = (flat.size - offset,) if size is None else tuple(size)
        return strided_memory(wrap(flat), size, _steps(size, stride), offset), flat
    if not isinstance(source, TensorState):
        raise ArgumentError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), but expected a "
            "tensor or a storage"
        )
    if source._data.dtype != kind:
        names = [small_name(array.dtype) for array in (source._data, tensor._data)]
        raise ShapeError(f"Could not set tensor of type {names[0]} to a tensor of type {names[1]}")
    if source._edge is not None:
        raise GraphError("set_() has no derivative: pass source.detach()")
    if size is None:
        return writable(source), memory_of(source)
    return strided_memory(source, tuple(size), _steps(size, stride), offset), memory_of(source)


def _steps(size: Sequence[int] | None, stride: Sequence[int] | None) -> tuple:
    """Return the given strides, else contiguous ones."""
    return tuple(prod(size[dim + 1 :]) for dim in range(len(size))) if stride is None else tuple(stride)
