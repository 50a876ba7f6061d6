"""A tensor's values in short: extremes, mean, norm, how many are NaN, infinite or zero; few values whole."""

import math

import numpy as np

from backlight.lens.nodes import Summary


def dtype_name(dtype) -> str:
    """Return `torch.float32` as `float32`."""
    return str(dtype).rpartition(".")[2]


def shape_of(tensor) -> Summary:
    """Return a tensor's shape and dtype, its values unread."""
    return Summary(tuple(tensor.shape), dtype_name(tensor.dtype))


def summary_of(array: np.ndarray, dtype: str, small: int) -> Summary:
    """Summarise an array.

    Args:
        dtype: what to call its type, which need not be NumPy's (bfloat16 comes as float32).
        small: up to so many elements are kept as they are.
    """
    made = Summary(tuple(array.shape), dtype, nans=0, infs=0, zeros=0)
    if array.size <= small:
        made.values = plain_values(array)
    if array.size == 0 or array.dtype.kind not in "biuf":
        if array.dtype.kind == "c":
            made.nans, made.infs, made.zeros = _odd_ones(array)
        return made
    flat, times = _distinct(array)
    if flat.dtype.kind != "f":
        flat = flat.astype(np.float64)
    elif flat.dtype.itemsize == 2:
        flat = flat.astype(np.float32)
    square = float(np.dot(flat, flat))
    if not math.isfinite(square):
        made.nans, made.infs, _ = (times * count for count in _odd_ones(flat))
        flat = flat[np.isfinite(flat)].astype(np.float64)
        square = float(np.dot(flat, flat))
    if flat.size:
        made.least, made.most = float(flat.min()), float(flat.max())
        made.mean = float(flat.mean(dtype=np.float64 if flat.size > 1 << 16 else None))
        made.norm = math.sqrt(square * times)
        made.zeros = times * (flat.size - int(np.count_nonzero(flat)))
    return made


def _odd_ones(array: np.ndarray) -> tuple[int, int, int]:
    """Return how many are NaN, infinite, zero."""
    return int(np.isnan(array).sum()), int(np.isinf(array).sum()), int(array.size - np.count_nonzero(array))


def _distinct(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return an array's elements in any order, and how often each stands in it: expanded dims repeat them."""
    if array.flags.c_contiguous:
        return array.reshape(-1), 1
    if array.flags.f_contiguous:
        return array.reshape(-1, order="F"), 1
    size = array.size
    if 0 in array.strides:
        array = array[tuple(0 if stride == 0 else slice(None) for stride in array.strides)]
    elif array.ndim > 2:  # a transposed tensor: in the order in which it lies in memory
        array = array.transpose(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))
    array = np.asarray(array)
    return array.reshape(-1), size // max(array.size, 1)


def plain_values(array: np.ndarray) -> list | float | str:
    """Return values as nested lists that JSON takes: NaN and infinities are strings, complex numbers too."""
    if array.dtype.kind == "c":
        return _mapped(array.tolist(), str)
    values = array.tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return _mapped(values, lambda value: value if math.isfinite(value) else str(value))
    return values


def _mapped(values, function):
    return [_mapped(one, function) for one in values] if isinstance(values, list) else function(values)
