"""What there is to say of arrays: extremes, sums, how many are NaN, infinite or zero; where they lie in memory."""

import math

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats

INFINITE, NAN = 1, 2  # what `nonfinite_kinds` finds
InShort = tuple[float, float, float, float, int, int, int]


@native
def numbers_in_short(x: np.ndarray) -> InShort:
    """Return (least, most, sum, sum of squares, NaNs, infinities, zeros) of an array of floats.

    The first four are over the finite numbers; without any, least is infinity and most its negative. The native one
    reads each number once.
    """
    flat = x.reshape(-1)
    nans = infs = 0
    square = float(np.dot(flat, flat))
    if not math.isfinite(square):
        nans, infs = int(np.isnan(flat).sum()), int(np.isinf(flat).sum())
        flat = flat[np.isfinite(flat)].astype(np.float64)
        square = float(np.dot(flat, flat))
    if not flat.size:
        return math.inf, -math.inf, 0.0, 0.0, nans, infs, 0
    zeros = flat.size - int(np.count_nonzero(flat))
    return float(flat.min()), float(flat.max()), float(flat.sum(dtype=np.float64)), square, nans, infs, zeros


@native
def whole_memory(x: np.ndarray) -> tuple[int, int]:
    """Return the address and the bytes of the array that `x` is a view of, through all views in between."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x.__array_interface__["data"][0], x.nbytes


@native
def nonfinite_kinds(x: np.ndarray) -> int:
    """Return NAN if an array or a NumPy scalar holds one, else INFINITE if it holds an infinity; 0 if all is finite.

    The native one looks at each number once, on all threads, and returns NAN + INFINITE if it met one of these first.
    """
    if x.dtype.kind not in "fV":
        return 0
    with silent_floats():
        if x.dtype.itemsize > 2 and np.isfinite(np.sum(x)):
            return 0
        if np.isnan(x).any():
            return NAN
        return INFINITE if np.isinf(x).any() else 0
