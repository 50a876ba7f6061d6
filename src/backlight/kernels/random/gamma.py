"""Gamma distributed numbers, and their gradients with respect to the shape at a fixed quantile.

(See NOTE [Equal to PyTorch's numbers] in kernels/random/distributions.py.) With F and f the distribution's cumulative
and density functions, a number x drawn with shape α moves as dx/dα = −(∂F(x; α) / ∂α) / f(x; α).

Sources: Marsaglia and Tsang, A simple method for generating gamma variables, 2000; Jankowiak and Obermeyer, Pathwise
derivatives beyond the reparameterization trick, arXiv:1806.01851 (expansions and rational approximations).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.random.generator import MersenneTwister
from backlight.kernels.random.mersenne_twister import random_units
from backlight.kernels.special.gamma import digamma
from backlight.kernels.state_blocks import silent_floats

FLOAT64 = np.dtype(np.float64)
_SQUEEZE = float(np.float32(0.0331))


def gammas(twister: MersenneTwister, shapes: np.ndarray) -> np.ndarray:
    """Return float64 numbers of the gamma distribution of rate 1, one for each shape, in the order of C.

    The shapes' dtype, float32 or float64, decides how constants are rounded, and what the smallest number is.
    """
    kind = shapes.dtype
    flat = np.ascontiguousarray(shapes).ravel()
    with silent_floats():
        below = flat < 1
        powers = np.where(below, 1 / flat, 0).astype(FLOAT64)
        raised = np.where(below, flat + kind.type(1), flat)
        d = (raised - kind.type(np.float32(1) / np.float32(3))).astype(FLOAT64)
        c = 1 / np.sqrt(9 * d)
    d = np.where(flat == 0, 0.0, d)  # nothing is drawn for a shape of 0
    with twister.lock:
        spare = np.array([twister.spare is not None, twister.spare or 0.0])
        numbers = twister.draw(random_gammas, flat.size, spare, powers, d, c)
        if flat.size:
            twister.spare = float(spare[1]) if spare[0] else None
    smallest = float(np.finfo(kind).tiny)
    return np.where(numbers > smallest, numbers, smallest).reshape(shapes.shape)


@native
def random_gammas(
    state: np.ndarray, count: int, spare: np.ndarray, powers: np.ndarray, d: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """Return numbers d · v · u^power, where v = (1 + c · x)³ of a normal x is accepted by a uniform number.

    Args:
        spare: whether a normal number is left from the last pair, and that number; kept up to date.
        powers: of a uniform number that is drawn first, or 0 for none.
        d: 0 for a number that is 0 and draws nothing.
    """

    def unit() -> float:
        return random_units(state, 1, FLOAT64).item()

    def normal() -> float:
        if spare[0]:
            spare[0] = 0
            return spare[1].item()
        first, second = random_units(state, 2, FLOAT64).tolist()
        radius, angle = math.sqrt(-2.0 * math.log1p(-second)), 2.0 * math.pi * first
        spare[:] = 1, radius * math.sin(angle)
        return radius * math.cos(angle)

    rows = zip(powers.tolist(), d.tolist(), c.tolist())
    return np.fromiter((_accepted(*row, unit, normal) for row in rows), float, count)


def _accepted(power: float, d: float, c: float, unit: Callable[[], float], normal: Callable[[], float]) -> float:
    """Return one number; NaN in its parameters is accepted at once."""
    if d == 0:
        return 0.0
    scale = _power(1 - unit(), power) if power else 1.0
    while True:
        x = normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v, u, square = y * y * y, 1 - unit(), x * x
        if u < 1 - _SQUEEZE * square * square:
            return scale * d * v
        if not _log(u) >= 0.5 * square + d * (1 - v + _log(v)):
            return scale * d * v


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else math.nan if x < 0 else -math.inf


def dirichlets(twister: MersenneTwister, concentrations: np.ndarray) -> np.ndarray:
    """Return numbers of the Dirichlet distribution along the last dim, in the dtype of the concentrations."""
    kind = concentrations.dtype
    numbers = gammas64(twister, concentrations)
    with silent_floats():
        shares = (numbers / numbers.sum(-1, keepdims=True)).astype(kind)
    low, high = np.finfo(kind).tiny, np.nextafter(kind.type(1), kind.type(0))
    return np.minimum(high, np.where(shares > low, shares, low))


def gammas64(twister: MersenneTwister, shapes: np.ndarray) -> np.ndarray:
    """Return gamma numbers for shapes taken as float64."""
    return gammas(twister, np.asarray(shapes, FLOAT64))


# --- the gradient of a gamma number with respect to its shape ---------------------------------------------------------


def by_cases(cases: Sequence[tuple[np.ndarray, Callable]], *arrays: np.ndarray) -> np.ndarray:
    """Return for each element what the first case whose mask holds computes of the flat arrays."""
    out = np.empty_like(arrays[0])
    open_ = np.ones(arrays[0].shape, bool)
    for mask, compute in cases:
        here = open_ & mask
        open_ &= ~mask
        if here.any():
            out[here] = compute(*[array[here] for array in arrays])
    return out


def standard_gamma_grad(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return dx/dα of numbers x drawn with shapes α and rate 1, computed in float64."""
    kind, shape = alpha.dtype, alpha.shape
    a, z = np.asarray(alpha, FLOAT64).ravel(), np.asarray(x, FLOAT64).ravel()
    large = a > 8
    middle = large & (float(np.float32(0.9)) * a <= z) & (z <= float(np.float32(1.1)) * a)
    everywhere = np.ones(a.shape, bool)
    with silent_floats():
        cases = [
            (z < float(np.float32(0.8)), _gamma_near_zero),
            (middle, _gamma_near_mean),
            (large, _gamma_saddle_point),
            (everywhere, _gamma_rational),
        ]
        return by_cases(cases, a, z).astype(kind).reshape(shape)


def _gamma_near_zero(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Differentiate the series of F at 0."""
    term, denominator = np.ones_like(x), a.copy()
    first, second = term / denominator, term / (denominator * denominator)
    for i in range(1, 6):
        term = term * (-x / i)
        denominator = denominator + 1
        first = first + term / denominator
        second = second + term / (denominator * denominator)
    power = x**a
    density = x ** (a - 1) * np.exp(-x)
    slope = (np.log(x) - digamma(a)) * (power * first) - power * second
    out = -slope / density
    return np.where(np.isnan(out), 0.0, out)


def _gamma_near_mean(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Expand Rice's saddle point formula about x = α, where it has a removable singularity."""
    first = 1 + 24 * a * (1 + 12 * a)
    second = 1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x)
    return first * second / (1244160 * (a * a) * (a * a))


def _gamma_saddle_point(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    root = np.sqrt(8 * a)
    pole = root / (a - x)
    tail = (x - a - a * np.log(x / a)) ** -1.5
    both = np.where(x < a, pole - tail, pole + tail)
    term = np.log(x / a) * both - np.sqrt(2 / a) * (a + x) / ((a - x) * (a - x))
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return -stirling * (x * term) / root


# coefficients of u^row · v^column, u = log(x / α) and v = log α, of numerator and denominator
_GAMMA_P = np.array(
    [
        [0.16009398, -0.094634809, 0.025146376, -0.0030648343],
        [0.53487893, 0.1298071, 0.065735949, -0.0015649758],
        [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
    ]
)
_GAMMA_Q = np.array(
    [
        [1, 0.32668115, 0.10406089, 0.0014179084],
        [0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
        [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07],
    ]
)


def _gamma_rational(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    u, v = np.log(x / a), np.log(a)
    values = []
    for table in (_GAMMA_P, _GAMMA_Q):
        by_v = [column[0] + u * (column[1] + u * column[2]) for column in table.T]
        values.append(by_v[0] + v * (by_v[1] + v * (by_v[2] + v * by_v[3])))
    return np.exp(values[0] / values[1])
