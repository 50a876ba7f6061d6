"""Bessel functions that swing (J, Y) and that fall off (K), and Airy's Ai, in float64.

Up to |x| = 25, J and Y are integrals of cos(x · sin θ) over θ, which the trapezoidal rule sums to the last digit, as it
sums a periodic function (DLMF 10.9.1). Y needs the even J_2k too (Neumann's series, DLMF 10.8.3): the same sum with
other weights, worked out once. Beyond, Hankel's series (DLMF 10.17.3). K is the integral of exp(−x · cosh t) (DLMF
10.32.9), near 0 its power series (10.31.1).
"""

import math

import numpy as np

from backlight.kernels.special.erf import horner, in_float64
from backlight.kernels.special.modified_bessel import i0, i1

_FAR = 25.0
_NODES = 128  # of the trapezoidal rule over a whole turn
_TURNS = (np.arange(_NODES // 4) + 0.5) * (2 * math.pi / _NODES)  # a quarter: π ± θ and −θ give the same |sin θ|
_BLOCK = 4096  # elements at a time: each needs a row of nodes
_SINES = np.sin(_TURNS)


def _neumann_weights(terms: int = 32) -> np.ndarray:
    """Return w with Σ w · cos(x · sin θ) = −(4/π) Σ (−1)^k J_2k(x) / k over k ≥ 1."""
    orders = np.arange(1, terms)[:, None]
    return (-4 / math.pi * (-1.0) ** orders / orders * np.cos(2 * orders * _TURNS)).sum(0) / len(_TURNS)


_WEIGHTS = _neumann_weights()


def _near(x: np.ndarray, order: int, second: bool):
    """Return J or Y of order 0 or 1 for flat 0 ≤ x ≤ 25."""
    out = np.empty_like(x)
    for start in range(0, len(x), _BLOCK):
        out[start : start + _BLOCK] = _near_block(x[start : start + _BLOCK], order, second)
    return out


def _near_block(x: np.ndarray, order: int, second: bool):
    angles = x[:, None] * _SINES
    waves = np.sin(angles) * _SINES if order else np.cos(angles)
    first = waves.mean(1)
    if not second:
        return first
    logarithm = np.log(x / 2) + np.euler_gamma
    out = 2 / math.pi * logarithm * first + waves @ _WEIGHTS
    return out - 2 / math.pi * np.cos(angles).mean(1) / x if order else out


def _hankel_coefficients(order: int, terms: int = 16) -> tuple[float, ...]:
    """Return a_k(order) = Π (4 · order² − (2j − 1)²) / (k! 8^k)."""
    found = [1.0]
    for k in range(1, terms):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(found)


_EVEN = [tuple(a * (-1) ** k for k, a in enumerate(_hankel_coefficients(order)[::2]))[::-1] for order in (0, 1)]
_ODD = [tuple(a * (-1) ** k for k, a in enumerate(_hankel_coefficients(order)[1::2]))[::-1] for order in (0, 1)]


def _far(x: np.ndarray, order: int, second: bool):
    """Return J or Y of order 0 or 1 for flat x > 25."""
    squared = 1 / (x * x)
    p, q = horner(_EVEN[order], squared), horner(_ODD[order], squared) / x
    # cos and sin of x − (order/2 + 1/4) · π, by the addition theorem: no digits of a large x are lost
    cosine, sine = np.cos(x), np.sin(x)
    turned = ((cosine + sine), (sine - cosine)) if order == 0 else ((sine - cosine), -(cosine + sine))
    both = (p * turned[1] + q * turned[0]) if second else (p * turned[0] - q * turned[1])
    return both / np.sqrt(math.pi * x)


def _wave(x: np.ndarray, order: int, second: bool):
    out = np.full_like(x, np.nan)
    size = np.abs(x)
    near, far = size <= _FAR, size > _FAR
    out[near], out[far] = _near(size[near], order, second), _far(size[far], order, second)
    return out


@in_float64
def bessel_j0(x: np.ndarray):
    """Return the Bessel function of the first kind of order 0."""
    return _wave(x, 0, False)


@in_float64
def bessel_j1(x: np.ndarray):
    """Return the Bessel function of the first kind of order 1."""
    return np.copysign(1, x) * _wave(x, 1, False)


@in_float64
def bessel_y0(x: np.ndarray):
    """Return the Bessel function of the second kind of order 0: −∞ at 0, NaN below."""
    return np.where(x > 0, _wave(x, 0, True), np.where(x == 0, -np.inf, np.nan))


@in_float64
def bessel_y1(x: np.ndarray):
    """Return the Bessel function of the second kind of order 1: −∞ at 0, NaN below."""
    return np.where(x > 0, _wave(x, 1, True), np.where(x == 0, -np.inf, np.nan))


@in_float64
def spherical_bessel_j0(x: np.ndarray):
    """Return sin(x) / x, 1 at 0 and 0 at ±∞."""
    return np.where(np.isinf(x), 0, np.sinc(x / math.pi))


_STEP = 0.2
_STEPS = np.arange(50) * _STEP
_HARMONIC = np.cumsum([0.0, *(1 / k for k in range(1, 20))])


def _falling(x: np.ndarray, order: int):
    """Return exp(x) · K(x) for flat x > 1: ∫ exp(−x · (cosh t − 1)) · cosh(order · t) dt, t in units of 1/√x."""
    t = _STEPS / np.sqrt(x)[:, None]
    values = np.exp(-2 * x[:, None] * np.sinh(t / 2) ** 2)
    values = values * np.cosh(t) if order else values
    return (values.sum(1) - values[:, 0] / 2) * _STEP / np.sqrt(x)


def _series(x: np.ndarray, order: int):
    """Return K(x) for flat 0 < x ≤ 1."""
    z, logarithm = x * x / 4, np.log(x / 2) + np.euler_gamma
    if order == 0:
        terms = [_HARMONIC[k] / math.factorial(k) ** 2 for k in reversed(range(16))]
        return horner(terms, z) - logarithm * i0(x)
    pairs = [(_HARMONIC[k] + _HARMONIC[k + 1]) / math.factorial(k) / math.factorial(k + 1) for k in reversed(range(16))]
    return 1 / x + logarithm * i1(x) - x / 4 * horner(pairs, z)


def _k(x: np.ndarray, order: int, scaled: bool):
    out = np.where(x == 0, np.inf, np.nan)
    near, far = (x > 0) & (x <= 1), x > 1
    out[near] = _series(x[near], order) * (np.exp(x[near]) if scaled else 1)
    out[far] = _falling(x[far], order) * (1 if scaled else np.exp(-x[far]))
    return np.where(x == np.inf, 0, out)


@in_float64
def modified_bessel_i0(x: np.ndarray):
    """Return the modified Bessel function of the first kind of order 0."""
    return i0(x)


@in_float64
def modified_bessel_i1(x: np.ndarray):
    """Return the modified Bessel function of the first kind of order 1."""
    return i1(x)


@in_float64
def modified_bessel_k0(x: np.ndarray):
    """Return the modified Bessel function of the second kind of order 0: ∞ at 0, NaN below."""
    return _k(x, 0, False)


@in_float64
def modified_bessel_k1(x: np.ndarray):
    """Return the modified Bessel function of the second kind of order 1: ∞ at 0, NaN below."""
    return _k(x, 1, False)


@in_float64
def scaled_modified_bessel_k0(x: np.ndarray):
    """Return exp(x) · modified_bessel_k0(x)."""
    return _k(x, 0, True)


@in_float64
def scaled_modified_bessel_k1(x: np.ndarray):
    """Return exp(x) · modified_bessel_k1(x)."""
    return _k(x, 1, True)


_PATH = (np.arange(260) + 0.5) * 0.025


def _airy_by_path(x: np.ndarray):
    """Return Ai(x) for flat x ≥ −10: exp(c³/3 − c · x) / π · ∫ exp(−c · s²) · cos(s³/3 + (x − c²) · s) ds over s > 0.

    It is Airy's integral (DLMF 9.5.4) along a line c above the real axis, through the saddle point where there is one.
    """
    c = np.sqrt(np.maximum(x, 0.25))
    s = _PATH / np.sqrt(c)[:, None]
    values = np.exp(-_PATH * _PATH) * np.cos(s**3 / 3 + (x - c * c)[:, None] * s)
    return values.sum(1) * 0.025 / np.sqrt(c) * np.exp(c * (c * c / 3 - x)) / math.pi


def _airy_coefficients(terms: int = 24) -> list[float]:
    """Return u_k of DLMF 9.7.2."""
    found = [1.0]
    for k in range(1, terms):
        found.append(found[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    return found


_AIRY_EVEN = [u * (-1) ** k for k, u in enumerate(_airy_coefficients()[::2])][::-1]
_AIRY_ODD = [u * (-1) ** k for k, u in enumerate(_airy_coefficients()[1::2])][::-1]


def _airy_below(x: np.ndarray):
    """Return Ai(−x) for flat x > 10 (DLMF 9.7.9)."""
    zeta = 2 / 3 * x * np.sqrt(x)
    squared, phase = 1 / (zeta * zeta), zeta - math.pi / 4
    waves = np.cos(phase) * horner(_AIRY_EVEN, squared) + np.sin(phase) * horner(_AIRY_ODD, squared) / zeta
    return waves / math.sqrt(math.pi) / np.sqrt(np.sqrt(x))


@in_float64
def airy_ai(x: np.ndarray):
    """Return Airy's function Ai."""
    out = np.full_like(x, np.nan)
    below, above = x < -10, (x >= -10) & (x < 110)
    out[below], out[above] = _airy_below(-x[below]), _airy_by_path(x[above])
    return np.where((x >= 110) & np.isfinite(x), 0, out)
