"""PyTorch's rules for the common dtype of several operands."""

import ml_dtypes
import numpy as np

from backlight import dtypes

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)

_FLOAT, _INTEGER, _BOOL = 2, 1, 0
_CATEGORY = {"f": _FLOAT, "V": _FLOAT, "i": _INTEGER, "u": _INTEGER, "b": _BOOL}


def category(kind: np.dtype) -> int:
    """Return 2 for floats, 1 for integers, 0 for bool."""
    return _CATEGORY[kind.kind]


def is_float(kind: np.dtype) -> bool:
    """Tell whether a NumPy dtype is floating point (bfloat16 included)."""
    return kind.kind == "f" or kind == BFLOAT16


def promote_types(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the common dtype of two dtypes: floats win over integers, integers over bool."""
    if a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if BFLOAT16 in (a, b):
        other = b if a == BFLOAT16 else a
        return FLOAT32 if other == FLOAT16 else other
    return np.promote_types(a, b)


def scalar_dtype(value) -> np.dtype:
    """Return the dtype that a Python number stands for."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    return dtypes.get_default_dtype().numpy


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Let `lower` change `higher` only if it is of a higher category."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    return promote_types(higher, lower) if category(lower) > category(higher) else higher


def common_dtype(arrays=(), scalars=()) -> np.dtype:
    """Return the dtype of the result for arrays (0-d ones count less) and Python numbers (which count least)."""
    with_dims = without_dims = numbers = None
    for array in arrays:
        if array.ndim:
            with_dims = array.dtype if with_dims is None else promote_types(with_dims, array.dtype)
        else:
            without_dims = array.dtype if without_dims is None else promote_types(without_dims, array.dtype)
    for number in scalars:
        kind = scalar_dtype(number)
        numbers = kind if numbers is None else promote_types(numbers, kind)
    return _combine(with_dims, _combine(without_dims, numbers))


def as_float(kind: np.dtype) -> np.dtype:
    """Return the dtype itself if it is floating point, else the default dtype."""
    return kind if category(kind) == _FLOAT else dtypes.get_default_dtype().numpy
