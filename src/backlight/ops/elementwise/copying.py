"""Copies: clone, casts, and writing one tensor into another."""

from collections.abc import Sequence

import numpy as np

from backlight import dtypes
from backlight.codegen.declaration import Array, op
from backlight.devices import is_meta, meta, require_cpu
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError, ValueProblem
from backlight.kernels.elementwise.complex_parts import real_parts
from backlight.kernels.memory_order import copied_in, is_contiguous_in, row_major, suggested_format
from backlight.layouts import contiguous_format, memory_format, preserve_format
from backlight.ops.inplace import store, will_record, write_over
from backlight.ops.memory_overlap import refuse_overlaps
from backlight.ops.type_promotion import has_gradient
from backlight.sizes import Shape, broadcast
from backlight.system.user_warnings import warn_once

__all__ = ["clone"]

ndarray = np.ndarray


@op(tangent="linear", complex="linear")
def clone(xp, input: Array, *, memory_format: memory_format = preserve_format):
    """A copy, part of the graph."""
    return xp.array(input) if memory_format is preserve_format and row_major(input) else copied_in(input, memory_format)


clone.derivative("input", formula="grad")(lambda grad: grad)


def contiguous(input: TensorState, *, memory_format: memory_format = contiguous_format):
    """Return the tensor with its elements row by row in memory, or in another format: itself, if they lie so already.

    Raises:
        RuntimeError: the format is that of another number of dims, or `preserve_format` and a copy is needed.
    """
    data = input._data
    if data.__class__ is not ndarray or (data.flags.c_contiguous and memory_format is contiguous_format):
        return input
    if is_contiguous_in(data, memory_format):
        return input
    if memory_format is preserve_format:
        raise GraphError("preserve memory format is unsupported by the contiguous operator; use clone()")
    return clone(input, memory_format=memory_format)


def _as(array: Array, kind: np.dtype):
    """Return a copy of an array in another dtype, of complex numbers without their imaginary part for a real one."""
    return (real_parts(array) if array.dtype.kind in "cW" and kind.kind not in "cWb" else array).astype(kind)


@op(tangent="linear", complex="own", layout="preserved")
def to_copy(xp, input: Array, kind: np.dtype):
    """The elements in another floating point or complex dtype; of complex numbers the real parts for a real one."""
    return _as(input, kind)


@op(node="ToCopyBackward0", tangent="linear", complex="own")
def to_format(xp, input: Array, kind: np.dtype, memory_format: memory_format):
    """The same as `to_copy`, laid out in a memory format."""
    return copied_in(_as(input, kind), memory_format)


for _one in (to_copy, to_format):
    _one.derivative("input", formula="grad, cast back")(
        lambda grad, input_dtype, ops: grad if grad.dtype == input_dtype else ops.to_copy(grad, input_dtype)
    )


@op(complex="own", layout="preserved")
def to_discrete(xp, input: Array, kind: np.dtype):
    """The elements as integers or bools, through which no gradient flows."""
    return _as(input, kind)


def cast(input: TensorState, kind: np.dtype, memory_format: memory_format | None = preserve_format):
    """Return the tensor in a NumPy dtype and a memory format: itself, if it has both."""
    if memory_format is not preserve_format and memory_format is not None:
        same = input._data.dtype == kind and suggested_format(input._data) is memory_format
        return input if same else converted(input, kind, memory_format)
    if input._data.dtype == kind:
        return input
    warn_of_discarded_parts(input, kind)
    return to_copy(input, kind) if has_gradient(kind) else to_discrete(input, kind)


def converted(input: TensorState, kind: np.dtype, memory_format: memory_format | None = preserve_format):
    """Return a copy of the tensor in a NumPy dtype and a memory format."""
    warn_of_discarded_parts(input, kind)
    if memory_format is preserve_format or memory_format is None:
        return to_copy(input, kind) if has_gradient(kind) else to_discrete(input, kind)
    if has_gradient(kind):
        return to_format(input, kind, memory_format)
    return clone(to_discrete(input, kind), memory_format=memory_format)


def warn_of_discarded_parts(input: TensorState, kind: np.dtype) -> None:
    """Warn as PyTorch does, once, if complex numbers are cast to a real dtype."""
    if input._data.dtype.kind in "cW" and kind.kind not in "cWb":
        warn_once("Casting complex values to real discards the imaginary part", stacklevel=4)


def to(input, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=preserve_format):
    """Return the tensor in another dtype: `to(dtype)`, `to(device, dtype)` or `to(other)`; or in a memory format.

    The tensor itself is returned where nothing changes, unless `copy` is set.

    Raises:
        RuntimeError: the device is not the CPU.
    """
    flags = []
    for value in args:
        if isinstance(value, TensorState):
            dtype = value._data.dtype
        elif isinstance(value, bool):
            flags.append(value)
        elif isinstance(value, (dtypes.dtype, np.dtype, type)):
            dtype = value
        elif value is not None:
            device = value
    if device is not None and is_meta(device):
        kind = input._data.dtype if dtype is None else dtype
        kind = kind if isinstance(kind, np.dtype) else dtypes.to_numpy_dtype(kind)
        return meta.make(input._data.shape, kind, input._edge is not None)
    if device is not None:
        require_cpu(device)
    kind = dtype if dtype is None or isinstance(dtype, np.dtype) else dtypes.to_numpy_dtype(dtype)
    copied = copy or flags[1:] == [True]  # the first flag is non_blocking, which changes nothing on the CPU
    if kind is None or kind == input._data.dtype:
        if memory_format is preserve_format:
            return to_copy(input, input._data.dtype) if copied else input
        kind = input._data.dtype
    if copied:
        return converted(input, kind, memory_format)
    return cast(input, kind, memory_format)


def type_name(kind: np.dtype) -> str:
    """Return the old name of a tensor's type: `torch.FloatTensor`."""
    return f"torch.{dtypes.from_numpy_dtype(kind).old_name}Tensor"


def as_type(
    input: TensorState,
    dtype: dtype | None = None,
    non_blocking: bool = False,
    *,
    memory_format: memory_format = preserve_format,
):
    """Return the tensor in another dtype, given as a dtype or as an old name; without one, the tensor's own old name.

    Raises:
        ValueError: there is no type of that name.
    """
    if dtype is None:
        return type_name(input._data.dtype)
    if isinstance(dtype, str):
        found = [kind.numpy for kind in dtypes.ALL if dtype in (f"torch.{kind.old_name}Tensor", repr(kind))]
        if not found:
            raise ValueProblem(f"invalid type: '{dtype}'; name a type as 'torch.FloatTensor', or pass torch.float32")
        return cast(input, found[0], memory_format)
    return cast(input, dtypes.to_numpy_dtype(dtype), memory_format)


def type_as(input: TensorState, other: TensorState):
    """Return the tensor in the dtype of another."""
    return cast(input, other._data.dtype)


def broadcast_into(shape: Sequence[int], target: Sequence[int]) -> None:
    """Raise PyTorch's error unless an array of `shape` broadcasts to the shape of the target."""
    if broadcast(target, shape) != target:
        raise ShapeError(
            f"output with shape {list(target)} doesn't match the broadcast shape {list(broadcast(target, shape))}"
        )


@op(name="copy", node="CopyBackwards", tangent="linear", complex="own")
def copied(xp, input: Array, src: Array):
    """The elements of `src` in the shape and the dtype of `input`, not yet copied: `copy_into` writes them."""
    if src.shape != input.shape:
        broadcast_into(src.shape, input.shape)
        src = xp.broadcast_to(src, input.shape)
    return _as(src, input.dtype) if src.dtype != input.dtype else src


copied.derivative("input", formula="0")(lambda grad, input_shape, ops: ops.new_zeros(grad, input_shape))


@copied.derivative("src", formula="grad, summed over what was broadcast, cast back")
def copied_src(grad: Array, src_shape: Shape, src_dtype: np.dtype, ops):
    return ops.to_copy(grad if grad.shape == src_shape else ops.sum_to_size(grad, src_shape), src_dtype)


@composite_function
def copy_into(self, src: TensorState, non_blocking: bool = False):
    """Write the elements of `src`, broadcast and cast, into this tensor, and return it.

    Raises:
        RuntimeError: the shape of `src` does not broadcast to this one.
    """
    recorded = will_record(self, src)
    refuse_overlaps(self, (src,), "copy_")
    warn_of_discarded_parts(src, self._data.dtype)
    if recorded:
        write_over(self, copied, (src,), "copy_")
    else:
        if src._data.shape != self._data.shape:
            broadcast_into(src._data.shape, self._data.shape)
        store(self, src._data if self._data.dtype.kind in "cWb" else real_parts(src._data), "copy_")
    return self
