"""Tensors from data: Python's numbers and lists, NumPy's arrays, other tensors."""

import warnings

import numpy as np

from backlight.devices import require_cpu
from backlight.dtypes import dtype, from_numpy_dtype, to_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.storage import new_storage
from backlight.engine.tensor_state import LEAF, TensorState, storage_of, wrap
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import silent_floats
from backlight.layouts import layout, require_strided
from backlight.ops.type_promotion import is_float
from backlight.system.user_warnings import warn_once
from backlight.tensor.nested_sequences import array_from
from backlight.types import Device

__all__ = ["as_tensor", "from_numpy", "frombuffer", "tensor"]

COPY_CONSTRUCT = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def leaf(data: np.ndarray | np.generic, requires_grad: bool = False):
    """Return a tensor over an array, not copied (one of 0 dims becomes a NumPy scalar: NOTE [0-d data]).

    Raises:
        TypeError: `requires_grad` is no bool.
        RuntimeError: `requires_grad` is set for a dtype that has no gradients.
    """
    if requires_grad is not False and not isinstance(requires_grad, (bool, np.bool_)):
        raise ArgumentError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if requires_grad and not is_float(data.dtype):
        raise GraphError(
            "Only Tensors of floating point and complex dtype can require gradients; this one is "
            f"{from_numpy_dtype(data.dtype)}: give floats, or dtype=torch.float32"
        )
    storage = new_storage() if modes.marks else None
    return wrap(data if data.ndim else data[()], LEAF if requires_grad else None, storage)


def made(data: np.ndarray, requires_grad: bool, device: Device, layout: layout | None = None, pin_memory: bool = False):
    """Return a tensor over an array, with PyTorch's usual options."""
    require_cpu(device)
    require_strided(layout)
    if pin_memory:
        raise GraphError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system. Leave pin_memory out"
        )
    return leaf(data, requires_grad)


def tensor(data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False):
    """Make a tensor that holds a copy of `data`.

    Args:
        data: a number, numbers in nested lists or tuples, a NumPy array, or a tensor.
        dtype: by default Python's floats become the default dtype, ints int64 and bools bool; arrays keep theirs.
        requires_grad: whether gradients are to be computed for it.

    Raises:
        ValueError: the lists are ragged.
        TypeError: something in `data` is no number.
        RuntimeError: the dtype cannot be inferred, cannot hold the values, or has no gradients.

    >>> tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, TensorState):
        warnings.warn(COPY_CONSTRUCT, UserWarning, stacklevel=2)
    return made(copied(data, to_numpy_dtype(dtype)), requires_grad, device, None, pin_memory)


def copied(data: object, kind: np.dtype | None) -> np.ndarray:
    """Return a new array of `kind` (by default as in `tensor`) with the values of `data`."""
    if isinstance(data, TensorState):
        return converted(data._data, kind or data._data.dtype, copy=True)
    if isinstance(data, np.ndarray):
        check_array(data)
        return converted(data, kind or data.dtype, copy=True)
    return array_from(data, kind)


def converted(data: np.ndarray | np.generic, kind: np.dtype, copy: bool = False) -> np.ndarray:
    """Return an array in another dtype; what does not fit becomes inf, or wraps round, without NumPy's warning."""
    with silent_floats():
        return np.asarray(data).astype(kind, copy=copy)


def check_array(array: np.ndarray) -> None:
    """Raise unless a tensor can be made from a NumPy array."""
    if not array.dtype.isnative:
        raise ValueProblem(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported. Convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    from_numpy_dtype(array.dtype)
    if any(stride < 0 for stride in array.strides):
        raise ValueProblem(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )


def from_numpy(array: np.ndarray):
    """Return a tensor that shares the array's memory: writes to one are visible in the other.

    Raises:
        TypeError: it is no array, or of a dtype that backlight does not have.
        ValueError: the array has negative strides, or swapped bytes.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {type(array).__name__}); use torch.tensor for other data")
    check_array(array)
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to the "
            "tensor will fail. You may want to copy the array to protect its data or make it writable before "
            "converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
            stacklevel=3,
        )
    shared = wrap(array.view(np.ndarray))
    storage_of(shared)
    return shared


def as_tensor(data: object, dtype: dtype | None = None, device: Device = None):
    """Return `data` as a tensor, sharing its memory (and history) where dtype and kind allow.

    Args:
        data: as for `tensor`; a tensor or a NumPy array of the right dtype is not copied.
    """
    require_cpu(device)
    kind = to_numpy_dtype(dtype)
    if isinstance(data, TensorState):
        return data if kind is None else data.to(from_numpy_dtype(kind))
    if isinstance(data, np.ndarray) and (kind is None or kind == data.dtype):
        return from_numpy(data)
    return leaf(copied(data, kind))


def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False):
    """Return a tensor of one dim over the memory of a buffer, as of a bytearray.

    Args:
        count: how many elements; by default all that follow `offset`.
        offset: bytes to skip.

    Raises:
        ValueError: the buffer is empty, or its size is no multiple of the element size.
    """
    kind = to_numpy_dtype(dtype)
    length = memoryview(buffer).nbytes
    if length == 0 or count == 0:
        raise ValueProblem(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueProblem(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % kind.itemsize:
        raise ValueProblem(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({kind.itemsize})"
        )
    if count > 0 and offset + count * kind.itemsize > length:
        raise ValueProblem(
            f"requested buffer length ({count} * {kind.itemsize} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({length} bytes)"
        )
    return from_numpy(np.frombuffer(buffer, kind, count, offset)).requires_grad_(requires_grad)
