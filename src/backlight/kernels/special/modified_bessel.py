"""The modified Bessel functions of the first kind, of order 0 and 1, with and without their exponential growth.

Source: F. W. J. Olver et al., NIST Digital Library of Mathematical Functions, 10.25.2 (the power series, whose terms
are all positive) up to |x| = 25, and 10.40.1 (the asymptotic series) beyond; both to the last digits of float64.
"""

import math

import numpy as np

from backlight.kernels.special.erf import horner, in_float64

_FAR = 25.0


def _power_coefficients(order: int, terms: int = 60) -> tuple[float, ...]:
    """Return 1 / (k! (k + order)!) for falling k."""
    return tuple(math.exp(-math.lgamma(k + 1) - math.lgamma(k + order + 1)) for k in reversed(range(terms)))


def _asymptotic_coefficients(order: int, terms: int = 24) -> tuple[float, ...]:
    """Return (−1)^k · Π (4 · order² − (2j − 1)²) / (k! 8^k), for falling k."""
    found = [1.0]
    for k in range(1, terms):
        found.append(found[-1] * -(4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(reversed(found))


_POWER = [_power_coefficients(order) for order in (0, 1)]
_ASYMPTOTIC = [_asymptotic_coefficients(order) for order in (0, 1)]


def _scaled(x: np.ndarray, order: int):
    """Return exp(−|x|) · I(x) for a flat float64 array."""
    size = np.abs(x)
    out = np.empty_like(x)
    near = size <= _FAR
    z = size[near]
    out[near] = horner(_POWER[order], z * z / 4) * (z / 2) ** order * np.exp(-z)
    z = size[~near]
    out[~near] = horner(_ASYMPTOTIC[order], 1 / z) / np.sqrt(2 * math.pi * z)
    return np.copysign(out, x) if order else out


def _unscaled(x: np.ndarray, order: int):
    """Return I(x); the exponential is taken in halves, so that it overflows no earlier than the result."""
    half = np.exp(np.abs(x) / 2)
    return _scaled(x, order) * half * half


@in_float64
def i0(x: np.ndarray):
    """Return the modified Bessel function of order 0."""
    return _unscaled(x, 0)


@in_float64
def i0e(x: np.ndarray):
    """Return exp(−|x|) · i0(x)."""
    return _scaled(x, 0)


@in_float64
def i1(x: np.ndarray):
    """Return the modified Bessel function of order 1."""
    return _unscaled(x, 1)


@in_float64
def i1e(x: np.ndarray):
    """Return exp(−|x|) · i1(x)."""
    return _scaled(x, 1)
