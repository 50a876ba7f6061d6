"""The standard's manipulation functions: they move, join and repeat elements."""

from collections.abc import Sequence

import numpy as np

from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.ops.dims import normalise_dims
from backlight.ops.elementwise.copying import cast
from backlight.ops.shape import expanding, flipping, joining, reshaping, splitting, transposing
from backlight.ops.type_promotion import common_dtype
from backlight.tensor.interop.numpy_counterparts import expand_dims

__all__ = ["broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose", "moveaxis"]
__all__ += ["permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]


def broadcast_arrays(*arrays) -> list:
    """Broadcast each to the common shape."""
    return list(expanding.broadcast_tensors(*arrays))


def broadcast_to(x: TensorState, /, shape: tuple[int, ...]):
    """Broadcast to a shape."""
    return expanding.broadcast_to(x, shape)


def _alike(arrays: Sequence[TensorState]) -> list:
    kind = common_dtype([np.empty(1, each._data.dtype) for each in arrays])
    return [cast(each, kind) for each in arrays]


def concat(arrays: Sequence[TensorState], /, *, axis: int | None = 0):
    """Concatenate along an axis; axis=None flattens first."""
    if axis is None:
        return joining.cat([reshaping.ravel(each) for each in _alike(arrays)])
    return joining.cat(_alike(arrays), axis)


def stack(arrays: Sequence[TensorState], /, *, axis: int = 0):
    """Stack along a new axis."""
    return joining.stack(_alike(arrays), axis)


def unstack(x: TensorState, /, *, axis: int = 0) -> tuple:
    """Return the slices along an axis."""
    return splitting.unbind(x, axis)


def flip(x: TensorState, /, *, axis: int | tuple[int, ...] | None = None):
    """Reverse the order along some axes, or all."""
    dims = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return flipping.flip(x, dims)


def matrix_transpose(x: TensorState, /):
    """Swap the last two dims."""
    return x.mT


def moveaxis(x: TensorState, source: int | tuple[int, ...], destination: int | tuple[int, ...], /):
    """Move some dims to other places."""
    return transposing.movedim(x, source, destination)


def permute_dims(x: TensorState, /, axes: tuple[int, ...]):
    """Return the dims in another order."""
    return transposing.permute(x, tuple(axes))


def repeat(x: TensorState, repeats: int | TensorState, /, *, axis: int | None = None):
    """Repeat each element or slice."""
    return expanding.repeat_interleave(x, repeats, axis)


def reshape(x: TensorState, /, shape: tuple[int, ...], *, copy: bool | None = None):
    """Return the elements in another shape; copy=False never copies."""
    if copy is False:
        return x.view(shape)
    found = reshaping.reshape(x, shape)
    return found if copy is None else found.clone()


def roll(x: TensorState, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None):
    """Shift cyclically along some axes."""
    if axis is None:
        return flipping.roll(x, shift)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return flipping.roll(x, shift if isinstance(shift, tuple) else (shift,) * len(axes), axes)


def squeeze(x: TensorState, /, axis: int | tuple[int, ...]):
    """Remove dims of size 1.

    Raises:
        ValueError: another dim is named.
    """
    shape = x._data.shape or (1,)
    axes = normalise_dims(axis, x._data.ndim)
    if any(shape[each] != 1 for each in axes):
        raise ValueProblem(f"cannot select an axis to squeeze out which has size not equal to one, got {axis}")
    return reshaping.squeeze(x, axes)


def tile(x: TensorState, repetitions: tuple[int, ...], /):
    """Repeat the full array."""
    return expanding.tile(x, tuple(repetitions))
