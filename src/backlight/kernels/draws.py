"""Random numbers as arrays, drawn as PyTorch's CPU kernels draw them, so that equal seeds give equal numbers.

NOTE [Equal to PyTorch's numbers]
Each function spends as many bits as PyTorch's and rounds where its compiled loops round, fused multiply-adds included.
Normal float32 numbers go through the polynomials of the Cephes library, which PyTorch vectorises (`_log`,
`_sine_cosine`). What PyTorch computes with the C library's functions, one number after the other, is computed with the
same functions here (`_each`). tests/test_random.py compares all of it with PyTorch. On Intel processors PyTorch draws
`bernoulli_` with one probability, and so dropout, from another generator (MKL's).
"""

import math

import numpy as np

from backlight.kernels.fused import multiply_add, multiply_add32
from backlight.kernels.generator import MersenneTwister
from backlight.kernels.twister import random_choices, random_noise, random_units

float32, float64 = np.float32, np.float64
_BITS_OF_32 = 2**28  # integers from a range this long are drawn with 64 bits


def _each(function, numbers: np.ndarray) -> np.ndarray:
    """Return a function of Python's math module of each element."""
    return np.fromiter(map(function, numbers.ravel().tolist()), float64, numbers.size).reshape(numbers.shape)


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
    with twister.lock:
        if not blocks or count < 16:
            numbers = narrowed(multiply_add(normal_pairs(twister, count), float64(std), float64(mean)), kind)
        else:
            wide = float64 if kind == float64 else float32
            numbers = multiply_add(_normal_blocks(twister, count, kind), wide(std), wide(mean))
    return numbers.astype(kind, copy=False)


def normal_pairs(twister: MersenneTwister, count: int) -> np.ndarray:
    """Return standard normal float64 numbers, made in pairs; if the last pair has one too many, the twister keeps it.

        √(−2 · log(1 − u₂)) · (cos 2πu₁, sin 2πu₁)

    Source: Box and Muller, A note on the generation of random normal deviates, 1958.
    """
    kept = [] if twister.spare is None or not count else [twister.spare]
    missing = count - len(kept)
    pairs = unit64(twister, missing + missing % 2).reshape(-1, 2)
    radius = np.sqrt(-2.0 * _each(math.log1p, -pairs[:, 1]))
    angle = 2.0 * math.pi * pairs[:, 0]
    made = np.stack([radius * _each(math.cos, angle), radius * _each(math.sin, angle)], 1).ravel()
    if kept or missing:
        twister.spare = made[-1].item() if missing % 2 else None
    return np.concatenate([kept, made[:missing]])


def _normal_blocks(twister: MersenneTwister, count: int, kind: np.dtype) -> np.ndarray:
    """Return standard normal numbers made in blocks of 16; the last 16 anew if a block would be incomplete.

    Half precision is made in float32, and spends no bits on an incomplete block.
    """
    draw = unit64 if kind == float64 else unit32
    whole = count // 16 * 16
    uniform = draw(twister, whole if kind.itemsize == 2 else count)
    numbers = np.empty(count, uniform.dtype)
    numbers[:whole] = _box_muller(uniform[:whole])
    if whole < count:
        numbers[-16:] = _box_muller(draw(twister, 16))
    return numbers


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Return normal numbers: in each block of 16, eight radii from the first half and eight angles from the second."""
    wide = uniform.dtype.type
    blocks = uniform.reshape(-1, 2, 8)
    first = wide(1) - blocks[:, 0]
    angle = wide(2.0 * math.pi) * blocks[:, 1]
    if wide is float64:
        radius, sine, cosine = np.sqrt(-2.0 * _each(math.log, first)), _each(math.sin, angle), _each(math.cos, angle)
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
    length = high - low
    bits = twister.bits32(count) if length < _BITS_OF_32 else twister.bits64(count)
    return (bits % np.uint64(length)).astype(np.int64) + low


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
    """Return the numbers below `count` in random order, by swapping each with one of those that follow."""
    order = list(range(count))
    draws = twister.bits32(max(count - 1, 0)) % np.arange(count, 1, -1, dtype=np.uint64)
    for place, step in enumerate(draws.tolist()):
        order[place], order[place + step] = order[place + step], order[place]
    return np.array(order, np.int64)


def exponential(twister: MersenneTwister, count: int, rate: float = 1.0) -> np.ndarray:
    """Return float64 numbers of density rate · exp(−rate · x)."""
    return -1.0 / rate * _each(math.log1p, -unit64(twister, count))


def geometric(twister: MersenneTwister, count: int, probability: float) -> np.ndarray:
    """Return how many trials it takes to succeed, as float64, if each does with a probability."""
    numbers = unit64(twister, count)
    with np.errstate(all="ignore"):
        return np.ceil(_each(lambda u: math.log(u) if u else -math.inf, numbers) / math.log1p(-probability))


def cauchy(twister: MersenneTwister, count: int, median: float, sigma: float) -> np.ndarray:
    """Return float64 numbers of the Cauchy distribution."""
    angles = math.pi * (unit64(twister, count) - 0.5)
    return median + sigma * _each(math.tan, angles)


def log_normal(twister: MersenneTwister, count: int, mean: float, std: float) -> np.ndarray:
    """Return float64 numbers whose logarithms are normal."""
    with twister.lock:
        return _each(math.exp, multiply_add(normal_pairs(twister, count), float64(std), float64(mean)))


def poisson(twister: MersenneTwister, rates: np.ndarray) -> np.ndarray:
    """Return a count for each rate of an array, of the Poisson distribution."""
    with twister.lock:
        counts = [_poisson(twister, rate) for rate in rates.ravel().astype(float64).tolist()]
    return np.array(counts, np.int64).reshape(rates.shape)


def _poisson(twister: MersenneTwister, rate: float) -> int:
    if rate == 0:
        return 0
    return _large_poisson(twister, rate) if rate >= 10 else _small_poisson(twister, rate)


def _small_poisson(twister: MersenneTwister, rate: float) -> int:
    """Multiply uniform numbers until their product is below exp(−rate)."""
    limit, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= unit64(twister, 1).item()
        if product <= limit:
            return count
        count += 1


def _large_poisson(twister: MersenneTwister, rate: float) -> int:
    """Draw by transformed rejection.

    Source: Hörmann, The transformed rejection method for generating Poisson random variables, 1993.
    """
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    while True:
        first, second = unit64(twister, 2).tolist()
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
