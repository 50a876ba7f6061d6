"""The incomplete gamma functions, and Hurwitz's zeta for any exponent, in float64.

Sources: for a < 200 the power series (DLMF 8.11.4) and Legendre's continued fraction (DLMF 8.9.2) on either side of
x = a + 1; from there on the integral itself by Gauss's rule over the dozen standard deviations where its integrand is
not 0 (the idea is W. H. Press et al., Numerical Recipes, 3rd edition, 6.2). Euler and Maclaurin's sum for zeta (DLMF
25.11.28).
"""

import math
from functools import cache

import numpy as np

from backlight.kernels.special.erf import horner, in_float64
from backlight.kernels.special.gamma import FAR, STIRLING, lgamma, zeta_sum
from backlight.system.fork_safety import import_unforked

_LARGE = 200.0
_LOG_SERIES = tuple((-1) ** (k + 1) / k for k in range(12, 1, -1))  # of log(1 + d) − d, from d² on
_PRECISION = 2.0**-53


def _log_less(x: np.ndarray, z: np.ndarray):
    """Return log(1 + d) − d, where d is (x − z) / z."""
    d = (x - z) / z
    return np.where(np.abs(d) < 0.02, horner(_LOG_SERIES, d) * d * d, np.log(x / z) - d)


def _density(a: np.ndarray, x: np.ndarray):
    """Return x^a · exp(−x) / Γ(a) for flat a < 200."""
    small = a < 13
    direct = np.exp(a * np.log(x) - x - lgamma(a))
    z = np.where(small, 13, a)
    near = np.exp(z * _log_less(x, z) - horner(STIRLING, 1 / (z * z)) / z) * np.sqrt(z / (2 * math.pi))
    return np.where(small, direct, near)


def _lower_by_series(a: np.ndarray, x: np.ndarray):
    """Return P(a, x) for flat x < a + 1."""
    term = total = 1 / a
    n = a
    while (np.abs(term) > np.abs(total) * _PRECISION).any():
        n = n + 1
        term = term * (x / n)
        total = total + term
    return total * _density(a, x)


def _upper_by_fraction(a: np.ndarray, x: np.ndarray):
    """Return Q(a, x) for flat x ≥ a + 1, the fraction from its front (Lentz's way)."""
    b = x + 1 - a
    c, d = np.full_like(x, 1e300), 1 / b
    total, k, moving = d, 0, np.ones(x.shape, bool)
    while moving.any():
        k += 1
        b = b + 2
        d = 1 / (b + k * (a - k) * d)
        c = b + k * (a - k) / c
        total = np.where(moving, total * (c * d), total)
        moving = moving & (np.abs(c * d - 1) > 2 * _PRECISION) & (k < 5000)
    return total * _density(a, x)


@cache
def _gauss() -> tuple:
    """Return the places of Gauss's rule between 0 and 1, and the shares of what is there."""
    places, shares = import_unforked("numpy.polynomial").legendre.leggauss(64)
    return 0.5 * (places + 1), 0.5 * shares


def _by_integral(a: np.ndarray, x: np.ndarray):
    """Return the smaller of P and Q of flat a ≥ 200, and whether it is Q."""
    peak = a - 1
    width = np.sqrt(peak)
    upper = x > peak
    up = np.maximum(peak + 11.5 * width, x + 6 * width)
    down = np.maximum(0, np.minimum(peak - 9 * width, x - 6 * width))
    end = np.where(upper, up, down)
    places, shares = _gauss()
    t = x[:, None] + (end - x)[:, None] * places
    heights = np.exp(peak[:, None] * _log_less(t, peak[:, None]))
    share = np.abs(end - x) * (heights @ shares) / (width * math.sqrt(2 * math.pi))
    return share * np.exp(-horner(STIRLING, 1 / (peak * peak)) / peak), upper


def _both(a: np.ndarray, x: np.ndarray, want_upper: bool):
    """Return P or Q with PyTorch's values at the borders."""
    out = np.full_like(x, np.nan)
    plain = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    series, large = plain & (x < a + 1) & (a < _LARGE), plain & (a >= _LARGE)
    fraction = plain & (x >= a + 1) & (a < _LARGE)
    lower = _lower_by_series(a[series], x[series])
    out[series] = 1 - lower if want_upper else lower
    upper = _upper_by_fraction(a[fraction], x[fraction])
    out[fraction] = upper if want_upper else 1 - upper
    share, is_upper = _by_integral(a[large], x[large])
    out[large] = np.where(is_upper == want_upper, share, 1 - share)
    everything, none = (0.0, 1.0) if want_upper else (1.0, 0.0)
    out[(a == 0) & (x > 0) | np.isinf(x) & (x > 0) & (a >= 0) & np.isfinite(a)] = everything
    out[(x == 0) & (a > 0) | np.isinf(a) & (a > 0) & (x >= 0) & np.isfinite(x)] = none
    return out


@in_float64
def gammainc(a: np.ndarray, x: np.ndarray):
    """Return P(a, x), the share of Γ(a)'s integral below x."""
    return _both(a, x, False)


@in_float64
def gammaincc(a: np.ndarray, x: np.ndarray):
    """Return Q(a, x) = 1 − P(a, x), exact where it is small."""
    return _both(a, x, True)


@in_float64
def zeta(s: np.ndarray, q: np.ndarray):
    """Return Hurwitz's zeta Σ 1 / (q + k)^s over k ≥ 0; NaN for s < 1, and where a negative q has no power s."""
    pole, powerless = (q <= 0) & (q == np.floor(q)), (q <= 0) & (s != np.floor(s))
    total = zeta_sum(s, np.where(pole | powerless, 1.0, q), FAR + np.clip(s, 0, 100))
    total = np.where(pole, np.inf, np.where(powerless, np.nan, total))
    total = np.where(np.isinf(s) & (q > 0), q**-s, total)
    return np.where(s == 1, np.inf, np.where(s < 1, np.nan, total))
