"""Normal numbers in blocks of 16, and functions of C's library, which PyTorch computes them with in float64.

(See NOTE [Equal to PyTorch's numbers] in kernels/random/distributions.py.)
"""

import math
from collections.abc import Callable

import numpy as np

from backlight.kernels.fused_multiply_add import multiply_add, multiply_add32
from backlight.kernels.native import native
from backlight.kernels.random.mersenne_twister import random_units

float32, float64 = np.float32, np.float64
_BEYOND = {"log": {0.0: -math.inf}, "log1p": {-1.0: -math.inf}}  # where Python's functions raise
_LARGEST_EXPONENT = math.log(np.finfo(float64).max)


@native
def by_c_library(name: str, numbers: np.ndarray) -> np.ndarray:
    """Return a function of each float64 as C's library rounds it: exp, log, log1p, sin, cos or tan."""
    function, beyond = getattr(math, name), _BEYOND.get(name, {})

    def one(x: float) -> float:
        if x in beyond:
            return beyond[x]
        return math.inf if name == "exp" and x > _LARGEST_EXPONENT else function(x)

    return np.fromiter(map(one, numbers.ravel().tolist()), float64, numbers.size).reshape(numbers.shape)


@native
def random_normals(state: np.ndarray, count: int, mean: float, std: float, kind: np.dtype) -> np.ndarray:
    """Return 16 or more normal numbers of float32 or float64, made in blocks of 16.

    The last 16 are made anew if a block would be incomplete.
    """
    numbers = in_blocks(random_units(state, count, kind), lambda more: random_units(state, more, kind))
    return multiply_add(numbers, kind.type(std), kind.type(mean))


def in_blocks(uniform: np.ndarray, draw: Callable) -> np.ndarray:
    """Return standard normal numbers, as many as uniform ones; the last 16 of `draw(16)` if they fill no block."""
    blocked = len(uniform) // 16 * 16
    numbers = np.empty_like(uniform)
    numbers[:blocked] = _box_muller(uniform[:blocked])
    if blocked < len(uniform):
        numbers[-16:] = _box_muller(draw(16))
    return numbers


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Return normal numbers: in each block of 16, eight radii from the first half and eight angles from the second."""
    wide = uniform.dtype.type
    blocks = uniform.reshape(-1, 2, 8)
    first = wide(1) - blocks[:, 0]
    angle = wide(2.0 * math.pi) * blocks[:, 1]
    if wide is float64:
        radius, sine, cosine = (
            np.sqrt(-2.0 * by_c_library("log", first)),
            by_c_library("sin", angle),
            by_c_library("cos", angle),
        )
    else:
        radius, (sine, cosine) = np.sqrt(wide(-2) * _log(first)), _sine_cosine(angle)
    return np.stack([radius * cosine, radius * sine], 1).ravel()


def _single(*numbers: float) -> tuple[float, ...]:
    """Return numbers as float32 holds them."""
    return tuple(np.array(numbers, float32).tolist())


_LOG = _single(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LOG_2 = _single(0.693359375, -2.12194440e-4)  # log 2 in two pieces
_SINE = _single(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = _single(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_EIGHTH = _single(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # −π/4 in three pieces
_PER_EIGHTH = float32(1.27323954473516)  # 4/π
_ROOT_HALF = float32(0.707106781186547524)


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    """Return a polynomial by Horner's rule, the highest power first."""
    value = multiply_add32(x, *coefficients[:2])
    for coefficient in coefficients[2:]:
        value = multiply_add32(value, x, coefficient)
    return value


def _log(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of float32 numbers from (0, 1], by Cephes' logf."""
    fraction, exponent = np.frexp(x)
    small = fraction < _ROOT_HALF
    exponent = (exponent - small).astype(float32)
    x = (fraction - float32(1)) + np.where(small, fraction, float32(0))
    square = x * x
    value = multiply_add32(_polynomial(x, _LOG) * x, square, exponent * float32(_LOG_2[1]))
    return multiply_add32(exponent, _LOG_2[0], x + multiply_add32(square, -0.5, value))


def _sine_cosine(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of float32 angles from [0, 2π), by Cephes' sinf and cosf."""
    octant = ((angle * _PER_EIGHTH).astype(np.int32) + 1) & ~1
    x, octants = angle, octant.astype(float32)
    for part in _EIGHTH:
        x = multiply_add32(octants, part, x)
    square = x * x
    cosine = multiply_add32(_polynomial(square, _COSINE) * square, square, square * float32(-0.5)) + float32(1)
    sine = multiply_add32(_polynomial(square, _SINE) * square, x, x)
    even = octant & 2 == 0
    sine, cosine = np.where(even, sine, cosine), np.where(even, cosine, sine)
    return np.where(octant & 4, -sine, sine), np.where((octant - 2) & 4, cosine, -cosine)
