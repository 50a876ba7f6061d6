"""GELU, exact and by tanh, with its slope, a block that fits the cache at a time.

Source: D. Hendrycks and K. Gimpel, Gaussian Error Linear Units, 2016, arXiv:1606.08415.
"""

import math

import numpy as np

from backlight.kernels.halves import is_half, rounded
from backlight.kernels.special import BLOCK, SQRT_HALF, erf

SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715
DENSITY = 1 / math.sqrt(2 * math.pi)


def gelu(x):
    """Return x · Φ(x), Φ the distribution function of the standard normal."""
    return _blockwise(_gelu_block, x)


def gelu_slope(x):
    """Return Φ(x) + x · φ(x)."""
    return _blockwise(_slope_block, x)


def gelu_tanh(x):
    """Return ½ · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))."""
    return _blockwise(_tanh_block, x)


def gelu_tanh_slope(x):
    """Return the derivative of `gelu_tanh`."""
    return _blockwise(_tanh_slope_block, x)


def _blockwise(work, x):
    x = np.asarray(x)
    if is_half(x):
        return rounded(_blockwise(work, x.astype(np.float32)), x.dtype)
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        work(part, out[start : start + BLOCK])
    return out.reshape(x.shape)


def _gelu_block(x, out):
    phi = erf(x * x.dtype.type(SQRT_HALF))
    phi += 1
    phi *= x
    np.multiply(phi, x.dtype.type(0.5), out=out)


def _slope_block(x, out):
    density = x * x
    density *= x.dtype.type(-0.5)
    np.exp(density, out=density)
    density *= x
    density *= x.dtype.type(DENSITY)
    phi = erf(x * x.dtype.type(SQRT_HALF))
    phi += 1
    phi *= x.dtype.type(0.5)
    np.add(phi, density, out=out)


def _tanh_block(x, out):
    bent = x * x
    bent *= x.dtype.type(CUBIC * SQRT_2_OVER_PI)
    bent += x.dtype.type(SQRT_2_OVER_PI)
    bent *= x
    np.tanh(bent, out=bent)
    bent += 1
    bent *= x
    np.multiply(bent, x.dtype.type(0.5), out=out)


def _tanh_slope_block(x, out):
    square = x * x
    bent = square * x.dtype.type(CUBIC * SQRT_2_OVER_PI)
    bent += x.dtype.type(SQRT_2_OVER_PI)
    bent *= x
    np.tanh(bent, out=bent)
    square *= x.dtype.type(3 * CUBIC * SQRT_2_OVER_PI)
    square += x.dtype.type(SQRT_2_OVER_PI)
    square *= x
    square *= 1 - bent * bent
    bent += 1
    bent += square
    np.multiply(bent, x.dtype.type(0.5), out=out)
