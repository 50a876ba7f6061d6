"""PyTorch's rules for the common dtype of several operands."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from backlight import dtypes
from backlight.errors import GraphError, NumberOverflow

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
COMPLEX128 = np.dtype(np.complex128)
INT64 = np.dtype(np.int64)

LONG, UNSIGNED_LONG = 2**63, 2**64  # where PyTorch's int64 and uint64 end

_COMPLEX, _FLOAT, _INTEGER, _BOOL = 3, 2, 1, 0
_CATEGORY = {"c": _COMPLEX, "W": _COMPLEX, "f": _FLOAT, "V": _FLOAT, "i": _INTEGER, "u": _INTEGER, "b": _BOOL}


def category(kind: np.dtype) -> int:
    """Return 3 for complex numbers, 2 for floats, 1 for integers, 0 for bool."""
    return _CATEGORY[kind.kind]


def is_float(kind: np.dtype) -> bool:
    """Tell whether a NumPy dtype is floating point (bfloat16 included)."""
    return kind.kind == "f" or kind == BFLOAT16


def is_complex(kind: np.dtype) -> bool:
    """Tell whether a NumPy dtype is complex."""
    return kind.kind in "cW"


def holds_complex(values) -> bool:
    """Tell whether an array, or a tensor, holds complex numbers."""
    return getattr(values, "_data", values).dtype.kind in "cW"


def has_gradient(kind: np.dtype) -> bool:
    """Tell whether tensors of a dtype can require gradients: floating point and complex ones."""
    return category(kind) >= _FLOAT


def promote_types(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the common dtype of two dtypes: complex wins over floats, floats over integers, integers over bool.

    Raises:
        RuntimeError: one is uint16, uint32 or uint64, and the other no float.
    """
    if a == b:
        return a
    if (a in dtypes.BAREBONES_UNSIGNED or b in dtypes.BAREBONES_UNSIGNED) and not (is_float(a) or is_float(b)):
        names = " and ".join(dtypes.from_numpy_dtype(kind).old_name for kind in (a, b))
        raise GraphError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {names}; convert one"
        )
    if category(a) != category(b):
        higher, lower = (a, b) if category(a) > category(b) else (b, a)
        if category(higher) == _COMPLEX and category(lower) == _FLOAT:
            return promote_types(higher, dtypes.complex_dtype(lower))
        return higher
    if BFLOAT16 in (a, b):
        other = b if a == BFLOAT16 else a
        return FLOAT32 if other == FLOAT16 else other
    return np.promote_types(a, b)


def check_scalar(value: float) -> None:
    """Raise unless a number is one that PyTorch takes: an int from −2⁶³ to 2⁶⁴ − 1, or any float.

    Raises:
        OverflowError: the int is too large.
    """
    if isinstance(value, int) and not -LONG <= value < UNSIGNED_LONG:
        message = "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
        raise NumberOverflow(f"{message}; a number beside a tensor must be -2**63 to 2**64 - 1: use a float")


def scalar_dtype(value: float) -> np.dtype:
    """Return the dtype of a Python number."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    if isinstance(value, complex):
        return dtypes.complex_dtype(dtypes.get_default_dtype().numpy)
    return dtypes.get_default_dtype().numpy


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Let `lower` change `higher` only if it is of a higher category."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if category(lower) <= category(higher):
        return higher
    if lower.kind in "cW" and category(higher) == _FLOAT:
        return dtypes.complex_dtype(higher)  # the precision stays that of the higher one
    return lower if lower.kind in "cW" and higher.kind == "u" else promote_types(higher, lower)


def common_dtype(arrays: Sequence = (), scalars: Sequence[float] = ()) -> np.dtype:
    """Return the dtype of the result for arrays (0-d ones count less) and Python numbers (which count least)."""
    with_dims = without_dims = numbers = None
    for array in arrays:
        if array.ndim:
            with_dims = array.dtype if with_dims is None else promote_types(with_dims, array.dtype)
        else:
            without_dims = array.dtype if without_dims is None else promote_types(without_dims, array.dtype)
    for number in scalars:
        if number.__class__ is int and not -LONG <= number < LONG:
            _check_unsigned_long(number, with_dims, without_dims)
        kind = scalar_dtype(number)
        numbers = kind if numbers is None else promote_types(numbers, kind)
    return _combine(with_dims, _combine(without_dims, numbers))


def _check_unsigned_long(number: int, *kinds) -> None:
    """Raise for an int that only PyTorch's uint64 holds, with bools: it would have to become the result's dtype."""
    check_scalar(number)
    present = [kind for kind in kinds if kind is not None]
    if present and all(kind == BOOL for kind in present):
        raise GraphError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote Bool and UInt64; "
            f"{number} is larger than int64 holds: use a float"
        )


def as_float(kind: np.dtype) -> np.dtype:
    """Return the dtype itself if it is floating point or complex, else the default dtype."""
    return kind if category(kind) >= _FLOAT else dtypes.get_default_dtype().numpy
