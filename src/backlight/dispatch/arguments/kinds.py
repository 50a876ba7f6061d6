"""Kinds of arguments: PyTorch's names for them, what each takes, and bits of a number for the compiled core.

The bits are the same in csrc/core/argument_kinds.c.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from backlight.devices import device
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.layouts import layout, memory_format

TENSOR, INT, BOOL, FLOAT, COMPLEX, STR, NONE, INTS, TENSORS, FLOATS, DTYPE, DEVICE, LAYOUT, FORMAT = (
    1 << bit for bit in range(14)
)
ANYTHING = (1 << 16) - 1
TYPES = ((TensorState, TENSOR), (dtype, DTYPE), (device, DEVICE), (layout, LAYOUT), (memory_format, FORMAT))


class Kind(NamedTuple):
    """A kind of PyTorch's schemas: what it takes, its name in errors, and what the core accepts for it at once."""

    takes: Callable[[object], bool]
    word: str
    mask: int


def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def is_int(value: object) -> bool:
    """Tell whether a value is an int, NumPy's or a 0-d tensor's too; bools are not."""
    if isinstance(value, TensorState):
        return value._data.ndim == 0 and value._data.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Tell whether a value is a number, NumPy's or a tensor's of one element too."""
    return isinstance(value, (int, float, complex, np.generic)) or _is_single(value)


def _is_float(value: object) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) or _is_single(value)


def _is_single(value: object) -> bool:
    return isinstance(value, TensorState) and value._data.size == 1 and value._edge is None


def _is_dtype(value: object) -> bool:
    return isinstance(value, dtype) or any(value is kind for kind in (float, int, bool, complex))


KINDS = {
    "Tensor": Kind(_is(TensorState), "Tensor", TENSOR),
    "int": Kind(is_int, "int", INT),
    "float": Kind(_is_float, "float", INT | FLOAT | BOOL),
    "bool": Kind(_is(bool, np.bool_), "bool", BOOL),
    "Scalar": Kind(is_number, "Number", INT | FLOAT | BOOL | COMPLEX),
    "ScalarType": Kind(_is_dtype, "torch.dtype", DTYPE),
    "str": Kind(_is(str), "str", STR),
    "Device": Kind(lambda value: isinstance(value, (str, device)) or is_int(value), "torch.device", STR | DEVICE | INT),
    "Layout": Kind(_is(layout), "torch.layout", LAYOUT),
    "MemoryFormat": Kind(_is(memory_format), "torch.memory_format", FORMAT),
    "Generator": Kind(lambda value: hasattr(type(value), "manual_seed"), "torch.Generator", 0),
    "Dimname": Kind(lambda value: False, "str", 0),
}
LISTS = {
    "int[]": INTS,
    "float[]": FLOATS,
    "Scalar[]": FLOATS,
    "Tensor[]": TENSORS,
    "Tensor?[]": TENSORS,
    "bool[]": 0,
    "Dimname[]": 0,
}
MASKS = {name: kind.mask for name, kind in KINDS.items()} | LISTS
