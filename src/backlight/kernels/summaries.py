"""What there is to say of many numbers: extremes, sums, how many are NaN, infinite or zero."""

import math

import numpy as np

from backlight.kernels.native import native

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
