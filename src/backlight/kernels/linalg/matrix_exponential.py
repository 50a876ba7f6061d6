"""The exponential of square matrices, for batches: a quotient of polynomials, after halving, before squaring."""

from collections.abc import Sequence

import numpy as np

from backlight.kernels.state_blocks import silent_floats

# Coefficients of the numerator for each dtype; up to this norm its error is below the dtype's precision.
COEFFICIENTS = {
    "f": ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.92572478),
    "d": (
        (
            *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
            *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
        ),
        5.371920351148152,
    ),
}


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """Return e^a = Σ aᵏ / k!.

    Each matrix is halved until its norm is small, and the result squared as often.

    Shapes: a (…, n, n) -> (…, n, n)

    Source: Higham, The scaling and squaring method for the matrix exponential revisited, 2005.
    """
    coefficients, limit = COEFFICIENTS[a.dtype.char.lower()]
    with silent_floats():
        norms = np.abs(a).sum(-2).max(-1, initial=0)
        halvings = np.ceil(np.log2(norms / norms.dtype.type(limit)))
        halvings = np.where(np.isfinite(halvings) & (halvings > 0), halvings, 0).astype(np.int64)[..., None, None]
        small = np.ldexp(a, -halvings) if a.dtype.kind != "c" else a * np.ldexp(norms.dtype.type(1), -halvings)
        found = _quotient(small, coefficients)
        for step in range(halvings.max(initial=0)):
            found = np.where(step < halvings, found @ found, found)
    return found


def _quotient(a: np.ndarray, coefficients: Sequence[float]) -> np.ndarray:
    """Return the quotient p(a) / p(−a) of polynomials with these coefficients."""
    identity = np.eye(a.shape[-1], dtype=a.dtype)
    square = a @ a
    power, even, odd = identity, coefficients[0] * identity, coefficients[1] * identity
    for place in range(2, len(coefficients), 2):
        power = power @ square
        even = even + coefficients[place] * power
        odd = odd + coefficients[place + 1] * power
    odd = a @ odd
    return np.linalg.solve(even - odd, even + odd)
