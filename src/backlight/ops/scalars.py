"""Python numbers as PyTorch's Scalar: which ones there are, and which a dtype can hold.

Where a number stands for an element (fill_, clamp, alpha, a padding value …) PyTorch refuses one that the dtype cannot
hold: `element`. Where it is an operand with a tensor (x + 300, x < 300) integers wrap round:
    `codegen/runtime_support.py`.
"""

import math

import numpy as np

from backlight.errors import GraphError
from backlight.ops.type_promotion import BFLOAT16, FLOAT16, FLOAT32, LONG, UNSIGNED_LONG, check_scalar

FLOAT64 = np.dtype(np.float64)

# dtype -> (smallest, largest, PyTorch's name for it); float64 holds every number
_INTEGERS = {
    np.dtype(kind): (np.iinfo(kind).min, np.iinfo(kind).max, "int" if kind == "int32" else f"{kind}_t")
    for kind in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
}
HALF_MAX = 65504.0
_FLOATS = {
    FLOAT16: (HALF_MAX, "c10::Half"),
    BFLOAT16: (float.fromhex("0x1.fep127"), "c10::BFloat16"),
    FLOAT32: (float(np.finfo(np.float32).max), "float"),
}


def is_plain(value: float, kind: np.dtype) -> bool:
    """Tell at little cost whether a number is one of those that NumPy writes to a dtype as `element` makes it."""
    if value.__class__ is float:
        return (kind is FLOAT32 or kind is FLOAT64) and -65504.0 <= value <= 65504.0
    return value.__class__ is int and -128 <= value <= 127 and (kind is FLOAT32 or kind is FLOAT64 or kind.kind == "i")


def element(value: float, kind: np.dtype, *, checks_halves: bool = True):
    """Return a Python number as an element (a NumPy scalar) of a dtype; integers drop what is behind the point.

    Args:
        checks_halves: whether float16 and bfloat16 refuse what they cannot hold; some ops of PyTorch give inf.

    Raises:
        OverflowError: the int is too large for any dtype.
        RuntimeError: the dtype cannot hold the number.
    """
    if value.__class__ is float:
        if (kind is FLOAT32 or kind is FLOAT64) and (-65504.0 <= value <= 65504.0 or value - value != 0.0):
            return kind.type(value)  # the most frequent: small, infinite or NaN
    elif isinstance(value, np.generic):
        value = value.item()
    if kind.kind in "cW":
        return kind.type(value)
    if value.__class__ is complex:
        if value.imag != 0 and kind.kind == "b":
            return kind.type(True)
        if value.imag != 0:
            name = _INTEGERS[kind][2] if kind in _INTEGERS else _FLOATS.get(kind, (0, "double"))[1]
            raise _overflow(name, f"it holds real numbers only, got {value}")
        value = value.real
    if value.__class__ is not float:
        check_scalar(value)
        value = int(value) if isinstance(value, int) else float(value)
    if kind in _INTEGERS:
        return _integer(value, kind)
    if kind.kind == "b":
        return np.bool_(value)
    if kind in _FLOATS and (checks_halves or kind == FLOAT32):
        largest, name = _FLOATS[kind]
        if abs(value) > largest and not math.isinf(value):
            raise _overflow(name, f"it ends at {largest:g}, got {value}")
    number = float(value)
    if kind.itemsize == 2:
        with np.errstate(all="ignore"):
            return kind.type(np.float32(number))  # PyTorch rounds twice, too
    return kind.type(number)


def _integer(value: float, kind: np.dtype):
    smallest, largest, name = _INTEGERS[kind]
    if isinstance(value, float):  # compared as floats: 2.0 ** 63 passes for int64, and wraps round
        fits = smallest <= value <= float(largest)
    else:
        fits = (smallest or -largest) <= value <= largest  # in uint8, -1 wraps round
    if not fits:
        raise _overflow(name, f"it holds {smallest} to {largest}, got {value}")
    return np.array((int(value) + LONG) % UNSIGNED_LONG - LONG, np.int64).astype(kind)[()]


def _overflow(name: str, remedy: str) -> GraphError:
    return GraphError(f"value cannot be converted to type {name} without overflow; {remedy}")


def element_like(array: np.ndarray, value: float):
    """Return a number as an `element` of an array's dtype: as a 0-d array for an array, else as a NumPy scalar."""
    kind = array.dtype
    if (kind is FLOAT32 or kind is FLOAT64) and value.__class__ is not complex and -65504.0 <= value <= 65504.0:
        return np.array(value, kind) if array.__class__ is np.ndarray else kind.type(value)
    found = element(value, kind)
    return np.asarray(found) if array.__class__ is np.ndarray else found
