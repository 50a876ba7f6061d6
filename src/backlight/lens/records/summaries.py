"""A tensor's values in short: extremes, mean, norm, how many are NaN, infinite or zero; all values if there are few."""

import math
from functools import cache, lru_cache

import numpy as np

from backlight.kernels.reduction.summaries import numbers_in_short
from backlight.lens.records.nodes import Summary
from backlight.training.engine_types import AnyTensor


@cache
def dtype_name(dtype: object) -> str:
    """Return `torch.float32` as `float32`."""
    return str(dtype).rpartition(".")[2]


def shape_of(tensor: AnyTensor) -> Summary:
    """Return a tensor's shape and dtype, its values unread. Those of one shape and dtype are one object."""
    return unread(tuple(tensor.shape), tensor.dtype)


@lru_cache(maxsize=10_000)
def unread(shape: tuple[int, ...], dtype: object) -> Summary:
    """Return the summary of a tensor whose values are not read."""
    return Summary(tuple(shape), dtype_name(dtype))


def summary_of(array: np.ndarray, dtype: str, small: int) -> Summary:
    """Summarise an array.

    Args:
        dtype: what to call its type, which need not be NumPy's (bfloat16 comes as float32).
        small: up to so many elements are kept as they are.
    """
    kind = array.dtype.kind
    if array.size == 0 or kind not in "biuf":
        # summarise an empty array, or one of complex numbers, of which only NaN, infinities and zeros are counted
        nans, infs = (int(test(array).sum()) if array.dtype.kind == "c" else 0 for test in (np.isnan, np.isinf))
        zeros = array.size - int(np.count_nonzero(array)) if array.dtype.kind == "c" else 0
        values = plain_values(array) if array.size <= small else None
        return Summary(array.shape, dtype, nans=nans, infs=infs, zeros=zeros, values=values)
    flat, times = _distinct(array)
    if kind != "f":
        flat = flat.astype(np.float64)
    elif flat.dtype.itemsize == 2:
        flat = flat.astype(np.float32)
    least, most, total, square, nans, infs, zeros = numbers_in_short(flat)
    finite = flat.size - nans - infs
    if array.size > small:
        values = None
    else:
        values = array.tolist() if kind != "f" or not nans + infs else plain_values(array)
    if finite == 0:
        return Summary(array.shape, dtype, None, None, None, None, times * nans, times * infs, 0, values)
    mean, norm = total / finite, math.sqrt(square * times)
    if not (math.isfinite(total) and math.isfinite(square * times)):
        mean, norm = _of_huge_numbers(flat, finite, times)
    return Summary(array.shape, dtype, least, mean, most, norm, times * nans, times * infs, times * zeros, values)


def _of_huge_numbers(flat: np.ndarray, finite: int, times: int) -> tuple[float, float]:
    """Return mean and norm of finite numbers whose sum, or sum of squares, float64 cannot hold; the norm at most its
    largest number."""
    numbers = flat[np.isfinite(flat)].astype(np.float64)
    largest = float(np.abs(numbers).max())
    scaled = numbers / largest
    mean = float(scaled.sum()) / finite * largest
    return mean, min(largest * math.sqrt(float((scaled * scaled).sum()) * times), float(np.finfo(np.float64).max))


def _distinct(array: np.ndarray) -> tuple[np.ndarray, int]:
    """Return an array's elements in any order, and how often each stands in it: expanded dims repeat them."""
    if array.flags.c_contiguous:
        return array, 1
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


def _mapped(values: list | float | str | None, function):
    return [_mapped(one, function) for one in values] if isinstance(values, list) else function(values)
