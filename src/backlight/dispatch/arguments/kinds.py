"""Kinds of arguments as bits of a number, the same in Python and in the compiled core (csrc/core/argument_kinds.c)."""

from backlight.devices import device
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.layouts import layout, memory_format

TENSOR, INT, BOOL, FLOAT, COMPLEX, STR, NONE, INTS, TENSORS, FLOATS, DTYPE, DEVICE, LAYOUT, FORMAT = (
    1 << bit for bit in range(14)
)
ANYTHING = (1 << 16) - 1
TYPES = ((TensorState, TENSOR), (dtype, DTYPE), (device, DEVICE), (layout, LAYOUT), (memory_format, FORMAT))
