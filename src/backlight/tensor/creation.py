"""Tensors from data: Python's numbers and nested lists, NumPy's arrays, other tensors."""

import operator
import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np

from backlight import dtypes
from backlight.devices import CHOSEN, is_meta, meta, require_cpu
from backlight.dtypes import dtype, from_numpy_dtype, to_numpy_dtype
from backlight.engine.grad_mode import modes
from backlight.engine.storage import new_storage
from backlight.engine.tensor_state import LEAF, TensorState, storage_of, wrap
from backlight.errors import ArgumentError, GraphError, NumberOverflow, ValueProblem
from backlight.kernels.state_blocks import silent_floats
from backlight.layouts import layout, require_strided
from backlight.ops.type_promotion import (
    BFLOAT16,
    BOOL,
    FLOAT32,
    UNSIGNED_LONG,
    category,
    has_gradient,
    promote_types,
    scalar_dtype,
)
from backlight.system.user_warnings import warn_once
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
    if requires_grad and not has_gradient(data.dtype):
        raise GraphError(
            "Only Tensors of floating point and complex dtype can require gradients; this one is "
            f"{from_numpy_dtype(data.dtype)}: give floats, or dtype=torch.float32"
        )
    storage = new_storage() if modes.marks else None
    return wrap(data if data.ndim else data[()], LEAF if requires_grad else None, storage)


def made(data: np.ndarray, requires_grad: bool, device: Device, layout: layout | None = None, pin_memory: bool = False):
    """Return a tensor over an array, with PyTorch's usual options."""
    if (device is not None or CHOSEN.blocks) and is_meta(device):
        return meta.make(data.shape, data.dtype, requires_grad)
    require_cpu(device)
    require_strided(layout)
    if pin_memory:
        raise GraphError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system. Leave pin_memory out"
        )
    return leaf(data, requires_grad)


def tensor(data: object, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False):
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


def _full_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def from_numpy(array: np.ndarray):
    """Return a tensor that shares the array's memory: writes to one are visible in the other.

    Raises:
        TypeError: it is no array, or of a dtype that backlight does not have.
        ValueError: the array has negative strides, or swapped bytes.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {_full_name(type(array))}); use torch.tensor for other data")
    check_array(array)
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program.",
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
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueProblem("object does not implement Python buffer protocol.") from None
    length = view.nbytes
    if view.readonly:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
            "buffer to protect its data or make it writable before converting it to a tensor. This type of warning "
            "will be suppressed for the rest of this program.",
            stacklevel=3,
        )
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
    if requires_grad and kind.kind not in "fcV":
        raise GraphError("Only Tensors of floating point and complex dtype can require gradients")
    shown = wrap(np.frombuffer(buffer, kind, count, offset))
    storage_of(shown)
    return shown.requires_grad_(requires_grad)


# --- nested lists and tuples of numbers, by PyTorch's rules for sizes and dtypes --------------------------------------

UINT64 = np.dtype(np.uint64)
MOST_DIMS = 64  # NumPy's limit

TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)

_PLAIN = {float, int, bool, complex}


def array_from(data: object, kind: np.dtype | None) -> np.ndarray:
    """Return a new array of `kind` (by default inferred from the values) from nested sequences of numbers.

    Raises:
        ValueError: the sequences are ragged or too deep.
        TypeError: something in them is no number.
        RuntimeError: the dtype cannot be inferred from the values, or cannot hold them.
    """
    if isinstance(data, (str, bytes)):
        raise _invalid(data)
    sizes = _sizes(data)
    flat = _flattened(data, sizes)
    types = set(map(type, flat))
    if list in types and any(each is data for each in flat):
        raise ArgumentError("new(): self-referential lists are incompatible")
    if isinstance(data, (list, tuple)) and len(data) and type(data[0]) is np.ndarray:
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor.",
            stacklevel=6,
        )
    if kind is None:
        kind = _kind_of_plain(types) if types <= _PLAIN else _kind_of_all(flat)
    if not types <= _PLAIN:
        flat = list(map(partial(_number, kind=kind), flat))
    return _stored(flat, kind).reshape(sizes)


def is_sequence(value: object) -> bool:
    """Tell whether a value is a sequence: a list, a tuple, a range, an array with dims; never a tensor."""
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (TensorState, dict)) or getattr(value, "ndim", 1) == 0:
        return False
    return hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__")


def _sizes(data: object) -> tuple[int, ...]:
    """Return the shape that the first element of each level gives."""
    sizes = []
    while is_sequence(data):
        sizes.append(len(data))
        if len(sizes) > MOST_DIMS or isinstance(data, (str, bytes)):
            raise ValueProblem(f"too many dimensions '{type(data).__name__}'")
        if not len(data):
            break
        try:
            data = data[0]
        except LookupError:
            raise ValueProblem(f"could not determine the shape of object type '{type(data).__name__}'") from None
    return tuple(sizes)


def _flattened(data: object, sizes: tuple[int, ...]) -> list:
    """Return all elements in order, level by level."""
    level = [data]
    for dim, size in enumerate(sizes):
        below = []
        for row in level:
            if not is_sequence(row):
                raise ArgumentError("not a sequence")
            if len(row) != size:
                raise ValueProblem(
                    f"expected sequence of length {size} at dim {dim} (got {len(row)}); rows must be equally long"
                )
            below.extend(row)
        level = below
    return level


def _kind_of_plain(types: set[type]) -> np.dtype:
    """Return the dtype for Python numbers of these types; without any, the default dtype."""
    if complex in types:
        return scalar_dtype(1j)
    if float in types or not types:
        return dtypes.get_default_dtype().numpy
    return dtypes.int64.numpy if int in types else dtypes.bool.numpy


def _kind_of_all(values: Sequence) -> np.dtype:
    """Return the common dtype of values among which are tensors, NumPy's numbers or things that are no numbers."""
    common = None
    for value in values:
        kind = _kind_of(value)
        common = kind if common is None else promote_types(common, kind)
    return dtypes.get_default_dtype().numpy if common is None else common


def _kind_of(value: object) -> np.dtype:
    if isinstance(value, TensorState):
        return value._data.dtype
    if isinstance(value, np.generic):
        return from_numpy_dtype(value.dtype).numpy
    for number in (bool, int, float, complex):
        if isinstance(value, number):
            return _kind_of_plain({number})
    if isinstance(value, (str, bytes)):
        raise _invalid(value)
    if is_sequence(value):
        return _kind_of_all(value)
    raise GraphError(f"Could not infer dtype of {type(value).__name__}")


def _invalid(data: object) -> ArgumentError:
    return ArgumentError(f"new(): invalid data type '{type(data).__name__}'; tensors hold numbers")


def _number(value: object, kind: np.dtype):
    """Return a value as a Python number, or raise Python's error."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, TensorState):
        return _element(value, kind)
    if category(kind) == 3:
        return complex(value)
    if category(kind) == 2:
        if not hasattr(type(value), "__float__"):
            raise ArgumentError(f"must be real number, not {type(value).__name__}")
        return float(value)
    if isinstance(value, np.bool_) and kind == BOOL:
        return bool(value)
    try:
        return operator.index(value)
    except TypeError:
        name = type(value).__name__
        name = f"numpy.{name}" if isinstance(value, np.generic) else name
        raise ArgumentError(f"'{name}' object cannot be interpreted as an integer; convert it with int()") from None


def _element(tensor: TensorState, kind: np.dtype):
    """Return the only element of a tensor as a Python number."""
    data = tensor._data
    if category(kind) >= 2 and data.size != 1:
        raise ValueProblem("only one element tensors can be converted to Python scalars; use torch.stack for tensors")
    if category(kind) < 2 and (data.size != 1 or category(data.dtype) >= 2):
        raise ArgumentError(
            "only integer tensors of a single element can be converted to an index; use torch.stack for tensors"
        )
    if tensor._edge is not None:
        warn_once(TO_SCALAR, stacklevel=7)
    return data.item() if data.dtype != BFLOAT16 else float(data.reshape(-1)[0])


def _stored(flat: list, kind: np.dtype) -> np.ndarray:
    """Return Python numbers as an array of `kind`, if it can hold them."""
    if category(kind) != 3 and any(value.__class__ is complex for value in flat):
        what = "must be real number, not complex"
        if category(kind) < 2:
            what = "'complex' object cannot be interpreted as an integer"
        raise ArgumentError(f"{what}; pass dtype=torch.complex64 to keep both parts")
    if kind == UINT64:
        return _stored_unsigned(flat)
    if category(kind) == 1:
        return _stored_integers(flat, kind)
    with silent_floats():
        if kind.itemsize == 2:
            return np.array(flat, FLOAT32).astype(kind)  # PyTorch rounds twice, too
        return np.array(flat, kind)


def _stored_integers(flat: list, kind: np.dtype) -> np.ndarray:
    limits = np.iinfo(kind)
    lowest = limits.min or -limits.max  # PyTorch lets -1 wrap round in uint8
    if any(value.__class__ is float and not limits.min <= value <= float(limits.max) for value in flat):
        raise GraphError(f"value cannot be converted to type {kind.name} without overflow; {_held(limits)}")
    try:
        integers = np.array([int(value) for value in flat], np.int64)
    except (ValueError, OverflowError):
        if all(isinstance(value, int) for value in flat):
            raise ValueProblem("Overflow when unpacking long long; int64 ends at 2**63 - 1") from None
        raise GraphError(f"value cannot be converted to type {kind.name} without overflow") from None
    if integers.size and (integers.min() < lowest or integers.max() > limits.max):
        raise GraphError(f"value cannot be converted to type {kind.name} without overflow; {_held(limits)}")
    return integers.astype(kind)


def _stored_unsigned(flat: list) -> np.ndarray:
    """Return Python's ints as uint64, which PyTorch reads by other rules than the other dtypes of integers."""
    for value in flat:
        if value.__class__ is float:
            raise ArgumentError("an integer is required; convert it with int()")
        if value < 0:
            raise NumberOverflow(f"can't convert negative int to unsigned: uint64 holds 0 to 2**64 - 1, got {value}")
        if value >= UNSIGNED_LONG:
            raise NumberOverflow(f"int too big to convert: uint64 holds 0 to 2**64 - 1, got {value}")
    return np.array(flat, UINT64)


def _held(limits: np.iinfo) -> str:
    return f"it holds {limits.min} to {limits.max}"
