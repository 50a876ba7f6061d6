"""Orthogonal polynomials, by the recurrences that define them, each term from the two before it (DLMF 18.9)."""

import numpy as np

from backlight.kernels.erf import in_float64

_MOST_HERMITE = {4: 128, 8: 512}  # PyTorch gives NaN above these degrees, by bytes of the dtype


def _by_recurrence(first, following):
    """Return pₙ(x) as a function of (x, n), where p₀ = 1, p₁ = first(x), pₖ₊₁ = following(x, k, pₖ, pₖ₋₁)."""

    @in_float64
    def values(x, n):
        n = np.trunc(np.nan_to_num(n, nan=-1))
        before, now = np.ones_like(x), first(x)
        out = np.where(n == 0, before, np.where(n < 0, 0.0, now))
        for k in range(1, int(n.max(initial=0))):
            before, now = now, following(x, k, now, before)
            out = np.where(n == k + 1, now, out)
        return out

    return values


def _doubled(x, k, now, before):
    return 2 * x * now - before


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
    "legendre_polynomial_p": (
        lambda x: x,
        lambda x, k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
    ),
}
_VALUES = {name: _by_recurrence(*how) for name, how in _RECURRENCES.items()}


def polynomial(name: str, x, n):
    """Return the values of the polynomial of a name and of degree n (0 for n < 0) at x, which broadcast."""
    found = _VALUES[name.removeprefix("shifted_")](2 * x - x.dtype.type(1) if name.startswith("shifted_") else x, n)
    if name.startswith("hermite"):
        found = np.where(np.trunc(n) > _MOST_HERMITE[x.dtype.itemsize], x.dtype.type(np.nan), found)
    return found
