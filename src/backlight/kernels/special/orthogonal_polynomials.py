"""Orthogonal polynomials, by the recurrences that define them, each term from the two before it (DLMF 18.9).

Inside (−1, 1) a Chebyshev polynomial of a larger degree is a quotient of sines and cosines (DLMF 18.5). Only Laguerre's
and Legendre's need all terms up to the degree: there the degree is limited.
"""

from collections.abc import Callable

import numpy as np

from backlight.errors import ShapeError
from backlight.kernels.special.erf import in_float64

_MOST_HERMITE = {4: 128, 8: 512}  # PyTorch gives NaN above these degrees, by bytes of the dtype
_MOST_TERMS = 300_000  # some seconds; PyTorch would run on for hours
_LONG = 2.0**63


def _by_recurrence(name: str, first: Callable, following: Callable):
    """Return pₙ(x) as a function of (x, n), where p₀ = 1, p₁ = first(x), pₖ₊₁ = following(x, k, pₖ, pₖ₋₁)."""

    @in_float64
    def values(x: np.ndarray, n: np.ndarray):
        n = np.where(np.abs(n) < _LONG, np.trunc(n), -1)  # what int64 does not hold becomes negative
        out = np.where(n == 0, 1.0, np.where(n < 0, 0.0, first(x)))
        known = n < 2
        if name in _CLOSED:
            known = _closed_form(name, x, n, known, out)
        left = np.flatnonzero(~known)
        if left.size:
            out[left] = _terms(name, first, following, x[left], n[left])
        return out

    return values


def _terms(name: str, first: Callable, following: Callable, x: np.ndarray, n: np.ndarray):
    """Return pₙ(x) for flat x and n ≥ 2; it stays NaN once it is."""
    before, now = np.ones_like(x), first(x)
    out = np.full_like(x, np.nan)
    for k in range(1, int(n.max())):
        before, now = now, following(x, k, now, before)
        out = np.where(n == k + 1, now, out)
        if k % 64 == 0 and np.isnan(now[n > k + 1]).all():
            break
        if k == _MOST_TERMS:
            raise ShapeError(
                f"{name}: the degree n must be at most {_MOST_TERMS} here, got {int(n.max())}; each term needs the two "
                "before it"
            )
    return out


def _closed_form(name: str, x: np.ndarray, n: np.ndarray, known: np.ndarray, out: np.ndarray):
    """Write into `out` what needs no recurrence, and return where `out` is known."""
    at_end, inside, more_than = _CLOSED[name]
    ends = ~known & (np.abs(x) == 1)
    if ends.any():
        odd = np.where(n[ends] % 2, -1.0, 1.0)
        out[ends] = at_end(np.where(x[ends] > 0, 1.0, odd), n[ends], x[ends] > 0)
    within = ~known & (np.abs(x) < 1) & (n > more_than)
    if inside is not None:
        out[within] = inside(np.arccos(x[within]), n[within])
        known = known | within
    return known | ends


def _doubled(x: np.ndarray, k: int, now: np.ndarray, before: np.ndarray):
    return 2 * x * now - before


# name -> (value at ±1 from its sign, n and whether x is 1; value at cos(angle), from this degree on)
_CLOSED = {
    "chebyshev_polynomial_t": (lambda sign, n, right: sign, lambda angle, n: np.cos(n * angle), 6),
    "chebyshev_polynomial_u": (
        lambda sign, n, right: sign * (n + 1),
        lambda angle, n: np.sin((n + 1) * angle) / np.sin(angle),
        8,
    ),
    "chebyshev_polynomial_v": (
        lambda sign, n, right: np.where(right, 1.0, sign * (2 * n + 1)),
        lambda angle, n: np.cos((n + 0.5) * angle) / np.cos(angle / 2),
        8,
    ),
    "chebyshev_polynomial_w": (
        lambda sign, n, right: np.where(right, 2 * n + 1, sign),
        lambda angle, n: np.sin((n + 0.5) * angle) / np.sin(angle / 2),
        8,
    ),
    "legendre_polynomial_p": (lambda sign, n, right: sign, None, 0),
}

_RECURRENCES = {
    "chebyshev_polynomial_t": (lambda x: x, _doubled),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _doubled),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _doubled),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _doubled),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, now, before: 2 * x * now - 2 * k * before),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, now, before: x * now - k * before),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda x, k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": (lambda x: x, lambda x, k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)),
}
_VALUES = {name: _by_recurrence(name, *how) for name, how in _RECURRENCES.items()}


def polynomial(name: str, x: np.ndarray, n: np.ndarray):
    """Return the values of the polynomial of a name and of degree n (0 for n < 0) at x, which broadcast.

    Raises:
        RuntimeError: the degree is larger than terms can be computed in seconds.
    """
    if name.startswith("hermite"):
        most = _MOST_HERMITE[x.dtype.itemsize]
        found = _VALUES[name](x, np.where(n < _LONG, np.minimum(n, most), -1).astype(n.dtype))
        return np.where((np.trunc(n) > most) & (n < _LONG), x.dtype.type(np.nan), found)
    if name.startswith("laguerre"):  # 1 at 0, whatever the degree
        n = np.where((x == 0) & (n > 0) & (n < _LONG), n.dtype.type(1), n)
    return _VALUES[name.removeprefix("shifted_")](2 * x - x.dtype.type(1) if name.startswith("shifted_") else x, n)
