"""Random numbers as arrays, drawn as PyTorch's CPU kernels draw them, so that equal seeds give equal numbers.

NOTE [Equal to PyTorch's numbers]
Each function spends as many bits as PyTorch's and rounds where its compiled loops round, fused multiply-adds included.
Normal float32 numbers go through the polynomials of the Cephes library, which PyTorch vectorises (in
kernels/random/normal.py). What PyTorch computes with the C library's functions, one number after the other, is computed
with the same functions here (`by_c_library`). tests/tensor/test_random.py compares all of it with PyTorch. On Intel
processors PyTorch draws `bernoulli_` with one probability, and so dropout, from another generator (MKL's).
"""

import math
from collections.abc import Callable

import numpy as np

from backlight.kernels.fused_multiply_add import multiply_add
from backlight.kernels.native import native
from backlight.kernels.random.generator import MersenneTwister
from backlight.kernels.random.mersenne_twister import (
    random_choices,
    random_noise,
    random_units,
    random_wide_words,
    random_words,
)
from backlight.kernels.random.normal import by_c_library, in_blocks, random_normals
from backlight.kernels.state_blocks import silent_floats

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


float32, float64 = np.float32, np.float64


def narrowed(numbers: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Return float64 numbers on their way to a dtype: those that become halves are rounded to float32 first."""
    return numbers.astype(float32) if kind.itemsize == 2 and kind.kind in "fV" else numbers


def unit32(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return float32 numbers from [0, 1): 24 random bits each."""
    return twister.draw(random_units, count, np.dtype(float32))


def unit64(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return float64 numbers from [0, 1): 53 random bits each."""
    return twister.draw(random_units, count, np.dtype(float64))


def uniform(twister: MersenneTwister, count: int, kind: np.dtype, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Return numbers from [low, high) in a float dtype."""
    wide = float64 if kind == float64 else float32
    numbers = (unit64 if wide is float64 else unit32)(twister, count)
    if (low, high) != (0.0, 1.0):
        numbers = multiply_add(numbers, wide(high) - wide(low), wide(low))
    numbers = numbers.astype(kind, copy=False)
    return np.where(numbers == kind.type(high), kind.type(low), numbers)  # where rounding reached the end


def normal(
    twister: MersenneTwister, count: int, kind: np.dtype, mean: float = 0.0, std: float = 1.0, blocks: bool = True
) -> np.ndarray:
    """Return normal numbers in a float dtype.

    Args:
        blocks: whether 16 or more are made in blocks, as for a contiguous tensor; else they are made in pairs.
    """
    if not blocks or count < 16:
        numbers = multiply_add(normal_pairs(twister, count), float64(std), float64(mean))
        return narrowed(numbers, kind).astype(kind, copy=False)
    if kind.itemsize > 2:
        return twister.draw(random_normals, count, float(mean), float(std), kind)
    with twister.lock:
        numbers = in_blocks(_half_units(twister, count), lambda more: unit32(twister, more))
    return multiply_add(numbers, float32(std), float32(mean)).astype(kind)


def _half_units(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return uniform float32 numbers to make halves of: those of an incomplete block spend no bits."""
    numbers = np.zeros(count, float32)
    in_blocks = count // 16 * 16
    numbers[:in_blocks] = unit32(twister, in_blocks)
    return numbers


def normal_pairs(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return standard normal float64 numbers, made in pairs; if the last pair has one too many, the twister keeps it.

        √(−2 · log(1 − u₂)) · (cos 2πu₁, sin 2πu₁)

    Source: Box and Muller, A note on the generation of random normal deviates, 1958.
    """
    with twister.lock:
        return _normal_pairs(twister, count)


def _normal_pairs(twister: MersenneTwister, count: int) -> np.ndarray:
    kept = [] if twister.spare is None or not count else [twister.spare]
    missing = count - len(kept)
    pairs = unit64(twister, missing + missing % 2).reshape(-1, 2)
    radius = np.sqrt(-2.0 * by_c_library("log1p", -pairs[:, 1]))
    angle = 2.0 * math.pi * pairs[:, 0]
    made = np.stack([radius * by_c_library("cos", angle), radius * by_c_library("sin", angle)], 1).ravel()
    if kept or missing:
        twister.spare = made[-1].item() if missing % 2 else None
    return np.concatenate([kept, made[:missing]])


def bernoulli(twister: MersenneTwister, count: int, probability: float) -> np.ndarray:
    """Return bools that are True with a probability."""
    return twister.draw(random_choices, count, float(probability))


def noise(twister: MersenneTwister, count: int, probability: float, value: float, kind: np.dtype) -> np.ndarray:
    """Return `value` with a probability, and 0 else, in a float dtype."""
    return twister.draw(random_noise, count, float(probability), float(value), kind)


def bernoulli_each(twister: MersenneTwister, probabilities: np.ndarray) -> np.ndarray:
    """Return a bool for each probability of an array, which is True with it."""
    draw = unit64 if probabilities.dtype == float64 else unit32
    return draw(twister, probabilities.size).reshape(probabilities.shape) < probabilities


def integers(twister: MersenneTwister, count: int, low: int, high: int) -> np.ndarray:
    """Return int64 numbers from [low, high)."""
    return twister.draw(random_integers, count, low, high)


def all_integers(twister: MersenneTwister, count: int, kind: np.dtype) -> np.ndarray:
    """Return whole numbers from all that a dtype holds: from 0 to its largest, in floats as far as each is exact."""
    if kind.kind == "b":
        limit = 2
    elif kind.kind in "iu":
        limit = int(np.iinfo(kind).max) + 1
    else:
        limit = {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}[kind.name] + 1
    bits = twister.bits64(count) if kind.itemsize == 8 else twister.bits32(count)
    return (bits % np.uint64(limit)).astype(kind)


def permutation(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return the numbers below `count` in random order."""
    return twister.draw(random_order, count - 1) if count else np.empty(0, np.int64)


def exponential(twister: MersenneTwister, count: int, rate: float = 1.0) -> np.ndarray:
    """Return float64 numbers of density rate · exp(−rate · x)."""
    return -1.0 / rate * by_c_library("log1p", -unit64(twister, count))


def geometric(twister: MersenneTwister, count: int, probability: float) -> np.ndarray:
    """Return how many trials it takes to succeed, as float64, if each does with a probability."""
    numbers = unit64(twister, count)
    with silent_floats():
        return np.ceil(by_c_library("log", numbers) / math.log1p(-probability))


def cauchy(twister: MersenneTwister, count: int, median: float, sigma: float) -> np.ndarray:
    """Return float64 numbers of the Cauchy distribution."""
    angles = math.pi * (unit64(twister, count) - 0.5)
    return median + sigma * by_c_library("tan", angles)


def log_normal(twister: MersenneTwister, count: int, mean: float, std: float) -> np.ndarray:
    """Return float64 numbers whose logarithms are normal."""
    return by_c_library("exp", multiply_add(normal_pairs(twister, count), float64(std), float64(mean)))


def poisson(twister: MersenneTwister, rates: np.ndarray) -> np.ndarray:
    """Return a count for each rate of an array, of the Poisson distribution."""
    wide = np.ascontiguousarray(rates, float64)
    return twister.draw(random_poisson, rates.size, wide).reshape(rates.shape)


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


@native
def random_binomials(state: np.ndarray, count: int, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return how often something of each probability happens in each count of trials, float64 numbers.

    Source: Wolfgang Hörmann: The generation of binomial random variates, 1993 (BTRS), where count · probability ≥ 10;
        below, sums of geometric numbers.
    """

    def draw() -> float:
        return random_units(state, 1, FLOAT64).item()

    pairs = zip(counts.tolist(), probabilities.tolist())
    return np.fromiter((_one(*pair, draw) for pair in pairs), float, count)


def binomial(twister: MersenneTwister, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return how often something of each probability happens in each count of trials; arrays of one shape.

    Bit for bit PyTorch's numbers, drawn one element after the other.
    """
    wide = [np.ascontiguousarray(one, float64).ravel() for one in (counts, probabilities)]
    return twister.draw(random_binomials, counts.size, *wide).reshape(counts.shape)
