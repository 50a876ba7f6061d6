"""Whole numbers at random: from a range, all of a range in random order, of the Poisson distribution.

(See NOTE [Equal to PyTorch's numbers] in kernels/random/distributions.py.)
"""

import math

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.random.mersenne_twister import random_units, random_wide_words, random_words

_BITS_OF_32 = 2**28  # integers from a range this long are drawn with 64 bits
FLOAT64 = np.dtype(np.float64)


@native
def random_integers(state: np.ndarray, count: int, low: int, high: int) -> np.ndarray:
    """Return int64 numbers from [low, high)."""
    length = high - low
    bits = (random_words if length < _BITS_OF_32 else random_wide_words)(state, count)
    return (bits % np.uint64(length)).astype(np.int64) + low


@native
def random_order(state: np.ndarray, last: int) -> np.ndarray:
    """Return the numbers up to `last` in random order, by swapping each but it with one of those that follow."""
    order = list(range(last + 1))
    steps = random_words(state, last) % np.arange(last + 1, 1, -1, dtype=np.uint64)
    for place, step in enumerate(steps.tolist()):
        order[place], order[place + step] = order[place + step], order[place]
    return np.array(order, np.int64)


@native
def random_poisson(state: np.ndarray, count: int, rates: np.ndarray) -> np.ndarray:
    """Return a number of the Poisson distribution for each of `count` float64 rates, as int64."""
    return np.fromiter((_poisson(state, rate) for rate in rates.ravel().tolist()), np.int64, count)


def _poisson(state: np.ndarray, rate: float) -> int:
    if rate == 0:
        return 0
    return _large_poisson(state, rate) if rate >= 10 else _small_poisson(state, rate)


def _small_poisson(state: np.ndarray, rate: float) -> int:
    """Multiply uniform numbers until their product is below exp(−rate)."""
    limit, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= random_units(state, 1, FLOAT64).item()
        if product <= limit:
            return count
        count += 1


def _large_poisson(state: np.ndarray, rate: float) -> int:
    """Draw by transformed rejection.

    Source: Hörmann, The transformed rejection method for generating Poisson random variables, 1993.
    """
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    while True:
        first, second = random_units(state, 2, FLOAT64).tolist()
        u = first - 0.5
        distance = 0.5 - abs(u)
        count = math.floor((2 * a / distance + b) * u + rate + 0.43) if distance else -1
        if distance >= 0.07 and second <= accepted:
            return count
        if count < 0 or (distance < 0.013 and second > distance):
            continue
        bound = -rate + count * math.log(rate) - math.lgamma(count + 1)
        density = second * inverse_alpha / (a / (distance * distance) + b)
        if density <= 0 or math.log(density) <= bound:
            return count
