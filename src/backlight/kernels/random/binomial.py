"""Binomial numbers, drawn as PyTorch draws them: bit for bit, one element after the other.

Sources: W. Hörmann, The generation of binomial random variates, 1993 (BTRS), where count · probability ≥ 10; below,
sums of geometric numbers.
"""

import math
from collections.abc import Callable

import numpy as np

from backlight.kernels.random.distributions import uniform
from backlight.kernels.random.generator import MersenneTwister

# log k! beyond Stirling's formula, for k = 0 … 9
_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _tail(k: float) -> float:
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _by_geometric(count: float, probability: float, draw: Callable[[], float]) -> float:
    """Count how many geometric numbers fit into `count`."""
    total, found, log_failure = 0.0, 0, math.log1p(-probability)
    while True:
        number = draw()
        total += math.ceil(math.log(number) / log_failure) if number else math.inf
        if total > count:
            return float(found)
        found += 1


def _by_rejection(count: float, probability: float, draw: Callable[[], float]) -> float:
    """Draw from a wide hat, and keep what lies under the distribution (BTRS; Hörmann's names)."""
    deviation = math.sqrt(count * probability * (1 - probability))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * probability
    c = count * probability + 0.5
    v_r = 0.92 - 4.2 / b
    r = probability / (1 - probability)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * probability)
    while True:
        u = draw() - 0.5
        v = draw()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= v_r:
            return float(k)
        height = v * alpha / (a / (us * us) + b)
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
            + _tail(m)
            + _tail(count - m)
            - _tail(k)
            - _tail(count - k)
        )
        if height <= 0 or math.log(height) <= bound:
            return float(k)


def _one(count: float, probability: float, draw: Callable[[], float]) -> float:
    if count <= 0 or probability <= 0:
        return 0.0
    if probability >= 1:
        return count
    if math.isnan(probability) or math.isinf(count):
        return math.nan if math.isnan(probability) else count
    rarer = min(probability, 1 - probability) if probability > 0.5 else probability
    found = (_by_rejection if count * rarer >= 10 else _by_geometric)(count, rarer, draw)
    return found if probability <= 0.5 else count - found


def binomial(twister: MersenneTwister, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return how often something of each probability happens in each count of trials; arrays of one shape."""
    kind = np.dtype(np.float64)

    def draw() -> float:
        return float(uniform(twister, 1, kind)[0])

    pairs = zip(counts.ravel().astype(float).tolist(), probabilities.ravel().astype(float).tolist())
    return np.array([_one(*pair, draw) for pair in pairs], kind).reshape(counts.shape)
