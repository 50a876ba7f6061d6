"""The logarithm of the gamma function and its derivatives, in float64 to the last digits.

Sources: Stirling's series (DLMF 5.11.1 and 5.11.2), the Euler-Maclaurin sum for Hurwitz's zeta (DLMF 25.11.28), the
reflection formulas (DLMF 5.5.3 and 5.5.4). Between 1.5 and 3, lgamma(2 + e) / e is the polynomial in (e − ¼) / ¾ that
interpolates it at 22 Chebyshev points of −½ ≤ e ≤ 1 (computed with 60 digits; error 2e-17).
"""

import math

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.special.erf import horner, in_float64
from backlight.system.fork_safety import import_unforked

_BETWEEN = (
    3.878098630841008e-12,
    -1.2158949590477255e-11,
    1.6872010456134027e-11,
    -5.342693581054193e-11,
    2.2036764697046337e-10,
    -6.998115136813461e-10,
    2.162475934751875e-09,
    -6.925713105559941e-09,
    2.234775211443794e-08,
    -7.234601854495343e-08,
    2.3583141940635866e-07,
    -7.755340125369117e-07,
    2.5781215371009545e-06,
    -8.690385586684712e-06,
    2.9836329700087517e-05,
    -0.00010503681061201159,
    0.0003832198800362254,
    -0.0014752842201940085,
    0.006196636568244162,
    -0.03054116466683421,
    0.21917882116244464,
    0.4994868595695864,
)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)  # B2, B4, …
STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))[::-1]
_DIGAMMA_SERIES = tuple(b / (2 * k) for k, b in enumerate(BERNOULLI, 1))[::-1]
FAR = 13.0  # from here on the series of Stirling, and of Euler and Maclaurin, reach the last digit


def _between(e: np.ndarray):
    """Return lgamma(2 + e) for −½ ≤ e ≤ 1."""
    return e * horner(_BETWEEN, (e - 0.25) / 0.75)


def _lgamma_positive(x: np.ndarray):
    """Return lgamma of flat x ≥ ½."""
    out = np.empty_like(x)
    near, far = x < 1.5, x > FAR
    e = x[near] - 1
    out[near] = _between(e) - np.log1p(e)
    z = x[far]
    series = horner(STIRLING, 1 / (z * z)) / z
    out[far] = np.where(np.isinf(z), z, (z - 0.5) * (np.log(z) - 1) + (0.5 * math.log(2 * math.pi) - 0.5 + series))
    middle = ~(near | far)
    z, product = x[middle], np.ones(np.count_nonzero(middle))
    while (above := z > 3).any():
        z = np.where(above, z - 1, z)
        product *= np.where(above, z, 1)
    out[middle] = _between(z - 2) + np.log(product)
    return out


@native
@in_float64
def lgamma(x: np.ndarray):
    """Return log |Γ(x)|."""
    out = np.empty_like(x)
    low = x < 0.5
    out[~low] = _lgamma_positive(x[~low])
    z = x[low]
    sine = np.abs(np.sin(math.pi * (z - np.rint(z))))
    out[low] = np.where(np.isinf(z) | (sine == 0), np.inf, math.log(math.pi) - np.log(sine) - _lgamma_positive(1 - z))
    return out


@native
@in_float64
def digamma(x: np.ndarray):
    """Return the derivative of lgamma; NaN at negative integers, ∓∞ at ±0."""
    low = x < 0.5
    z = np.where(low, 1 - x, x)
    shift = np.zeros_like(x)
    while (short := z < FAR).any():
        shift += np.where(short, 1 / z, 0)
        z = np.where(short, z + 1, z)
    inverse = 1 / (z * z)
    out = np.log(z) - 0.5 / z - inverse * horner(_DIGAMMA_SERIES, inverse) - shift
    fraction = x - np.rint(x)
    reflected = np.where(fraction == 0, np.nan, out - math.pi / np.tan(math.pi * fraction))
    found = np.where(low, reflected, out)
    return np.where(x == 0, np.copysign(np.inf, -x), found)


def zeta_sum(s: np.ndarray | int, z: np.ndarray, far: np.ndarray | float):
    """Return Σ 1 / (z + k)^s over k ≥ 0 of flat z by Euler and Maclaurin: terms up to `far`, and what is beyond."""
    total = np.zeros_like(z)
    while (short := z < far).any():
        total += np.where(short, z**-s, 0)
        z = np.where(short, z + 1, z)
    total += z ** (1 - s) / (s - 1) + z**-s / 2
    factor, power = s, z ** (-s - 1)
    for k, bernoulli in enumerate(BERNOULLI, 1):
        total += bernoulli / math.factorial(2 * k) * factor * power
        factor = factor * (s + 2 * k - 1) * (s + 2 * k)
        power = power / (z * z)
    return total


def zeta(s: int, q: np.ndarray):
    """Return Hurwitz's zeta Σ 1 / (q + k)^s over k ≥ 0, for a whole s ≥ 2 and an array of any float type."""

    def of_flat(x: np.ndarray):
        pole, far_below = (x <= 0) & np.isfinite(x) & (x == np.rint(x)), x < -FAR
        total = zeta_sum(s, np.where(pole, 1.0, np.where(far_below, 1 - x, x)), FAR)
        if far_below.any():  # as many terms as x is below 0 would take for ever
            mirrored = _nearest_poles(s, x) if s > 40 else (-1) ** (s - 1) * (_cotangent_derivative(s - 1, x) + total)
            total = np.where(far_below, mirrored, total)
        return np.where(pole, np.inf, total)

    return in_float64(of_flat)(q)


def _nearest_poles(s: int, x: np.ndarray):
    """Return Σ 1 / (x + k)^s over all whole k, for s so large that only the two nearest to 0 count."""
    nearest = x - np.rint(x)
    return nearest ** -float(s) + (nearest - np.copysign(1, nearest)) ** -float(s)


def _cotangent_derivative(n: int, x: np.ndarray):
    """Return π / n! times the n-th derivative of cot(πx), a polynomial in the cotangent: dc/dx = −π(1 + c²)."""
    Polynomial = import_unforked("numpy.polynomial").Polynomial
    polynomial = Polynomial([0, 1])
    for _ in range(n):
        polynomial = -polynomial.deriv() * Polynomial([1, 0, 1])
    return math.pi ** (n + 1) / math.factorial(n) * polynomial(1 / np.tan(math.pi * (x - np.rint(x))))


def polygamma(n: int, x: np.ndarray):
    """Return the n-th derivative of digamma, n ≥ 0."""
    if n == 0:
        return digamma(x)
    factorial = math.factorial(n) if n < 171 else math.inf
    with np.errstate(all="ignore"):
        return zeta(n + 1, x) * x.dtype.type(factorial if n % 2 else -factorial)
