"""Nested lists and tuples of numbers as one array, by PyTorch's rules for sizes and dtypes."""

import operator
from collections.abc import Sequence
from functools import partial

import numpy as np

from backlight import dtypes
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, GraphError, ValueProblem
from backlight.kernels.state_blocks import silent_floats
from backlight.ops.type_promotion import BFLOAT16, BOOL, FLOAT32, category, promote_types
from backlight.system.user_warnings import warn_once

MOST_DIMS = 64  # NumPy's limit

TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)

_PLAIN = {float, int, bool}


def array_from(data, kind: np.dtype | None) -> np.ndarray:
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
    if kind is None:
        kind = _kind_of_plain(types) if types <= _PLAIN else _kind_of_all(flat)
    if not types <= _PLAIN:
        flat = list(map(partial(_number, kind=kind), flat))
    return _stored(flat, kind).reshape(sizes)


def is_sequence(value) -> bool:
    """Tell whether a value is a sequence: a list, a tuple, a range, an array with dims; never a tensor."""
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (TensorState, dict)) or getattr(value, "ndim", 1) == 0:
        return False
    return hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__")


def _sizes(data) -> tuple[int, ...]:
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


def _flattened(data, sizes: tuple[int, ...]) -> list:
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


def _kind_of(value) -> np.dtype:
    if isinstance(value, TensorState):
        return value._data.dtype
    if isinstance(value, np.generic):
        return from_numpy_dtype(value.dtype).numpy
    for number in (bool, int, float):
        if isinstance(value, number):
            return _kind_of_plain({number})
    if isinstance(value, complex):
        raise ArgumentError(
            f"complex dtypes are not in backlight, got {value!r}: split it into real and imaginary parts"
        )
    if isinstance(value, (str, bytes)):
        raise _invalid(value)
    if is_sequence(value):
        return _kind_of_all(value)
    raise GraphError(f"Could not infer dtype of {type(value).__name__}")


def _invalid(data) -> ArgumentError:
    return ArgumentError(f"new(): invalid data type '{type(data).__name__}'; tensors hold numbers")


def _number(value, kind: np.dtype):
    """Return a value as a Python number, or raise Python's error."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, TensorState):
        return _element(value, kind)
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
    if category(kind) == 2 and data.size != 1:
        raise ValueProblem("only one element tensors can be converted to Python scalars; use torch.stack for tensors")
    if category(kind) != 2 and (data.size != 1 or category(data.dtype) == 2):
        raise ArgumentError(
            "only integer tensors of a single element can be converted to an index; use torch.stack for tensors"
        )
    if tensor._edge is not None:
        warn_once(TO_SCALAR, stacklevel=7)
    return data.item() if data.dtype != BFLOAT16 else float(data.reshape(-1)[0])


def _stored(flat: list, kind: np.dtype) -> np.ndarray:
    """Return Python numbers as an array of `kind`, if it can hold them."""
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


def _held(limits: np.iinfo) -> str:
    return f"it holds {limits.min} to {limits.max}"
