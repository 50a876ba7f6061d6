"""The error function and its relatives, in float64 to the last digits and in float32 fast.

Source: W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969),
and his program CALERF, for float64. In float32 erf(x) = tanh(x · P(x²) / Q(x²)), where P/Q is the minimax fit of
artanh(erf(x)) / x on |x| ≤ 4 (error 3.3e-9): NumPy's tanh is fast, and needs no cases.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import over_memory
from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats

BLOCK = 32768  # elements that stay in the cache from one pass to the next

# Cody's coefficients: erf near 0, exp(x²) · erfc in the middle, and its tail
_NEAR_P = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
           3.20937758913846947e3)  # fmt: skip
_NEAR_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
             2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
             1.23033935479799725e3)  # fmt: skip
_MIDDLE_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
             3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip
_TAIL_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
           1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_TAIL_Q = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
           2.33520497626869185e-3)  # fmt: skip
_NEAR, _TAIL = 0.46875, 4.0

# artanh(erf(x)) / x = P(x²) / Q(x²), scaled so that Q's highest coefficient is 1; highest first
_SCALE = 0.0003249239438002066
_FLOAT_P = tuple(
    np.array(c / _SCALE, np.float32)
    for c in (0.0021782798227284366, 0.04264653753966653, 0.2798068021389192, 1.1283791708449045)
)
_FLOAT_Q = tuple(np.array(c / _SCALE, np.float32) for c in (0.023689911477862383, 0.15689255422438836, 1.0))
_FLAT = np.float32(1e6)  # from this x² on P / Q is flat; its third power does not overflow


def horner(coefficients: Sequence, x: np.ndarray):
    """Return a polynomial's values; the coefficient of the highest power comes first."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += coefficient
    return out


def in_float64(function: Callable):
    """Let a function of flat float64 arrays take arrays of any float type and shape, and return the first's type.

    Several arrays broadcast. The function may write into what it is given.
    """

    def of_any(x: np.ndarray, *others):
        wide = np.array(x, np.float64)
        with silent_floats():
            if not others:
                return over_memory(wide, function).astype(x.dtype)[()]
            given = np.broadcast_arrays(wide, *[np.asarray(one, np.float64) for one in others])
            out = function(*[np.array(one).reshape(-1) for one in given])
        return out.reshape(given[0].shape).astype(x.dtype)[()]

    of_any.__doc__, of_any.__name__, of_any.__qualname__ = function.__doc__, function.__name__, function.__qualname__
    return of_any


def _scaled_tail(y: np.ndarray):
    """Return exp(y²) · erfc(y) for flat y > 0.46875."""
    out = np.empty_like(y)
    middle = y <= _TAIL
    z = y[middle]
    out[middle] = horner(_MIDDLE_P, z) / horner(_MIDDLE_Q, z)
    z = y[~middle]
    square = 1 / (z * z)
    out[~middle] = (1 / math.sqrt(math.pi) - square * horner(_TAIL_P, square) / horner(_TAIL_Q, square)) / z
    return out


def exp_of_square(y: np.ndarray, sign: float):
    """Return exp(sign · y²): the square is split so that its rounding error is not blown up."""
    coarse = np.trunc(y * 16) / 16
    rest = (y - coarse) * (y + coarse)
    return np.where(np.isinf(y), np.exp(sign * y * y), np.exp(sign * coarse * coarse) * np.exp(sign * rest))


def _erf_near(x: np.ndarray):
    square = x * x
    return x * horner(_NEAR_P, square) / horner(_NEAR_Q, square)


def erf_float64(x: np.ndarray) -> np.ndarray:
    """Return the error function of a flat float64 array."""
    y = np.abs(x)
    far = y > _NEAR
    out = np.empty_like(x)
    out[~far] = _erf_near(x[~far])
    z = y[far]
    out[far] = np.copysign(1 - exp_of_square(z, -1) * _scaled_tail(z), x[far])
    return out


def erf_float32(x: np.ndarray, out: np.ndarray, scratch: np.ndarray) -> None:
    """Write the error function of a block of float32 numbers into `out`; `scratch` holds two arrays of its size."""
    square, below = scratch
    np.multiply(x, x, square)
    if not square.max(initial=0) < _FLAT:
        np.minimum(square, _FLAT, out=square)
    np.add(square, _FLOAT_Q[0], below)
    for coefficient in _FLOAT_Q[1:]:
        np.multiply(below, square, below)
        np.add(below, coefficient, below)
    np.multiply(square, _FLOAT_P[0], out)
    for coefficient in _FLOAT_P[1:-1]:
        np.add(out, coefficient, out)
        np.multiply(out, square, out)
    np.add(out, _FLOAT_P[-1], out)
    np.divide(out, below, out)
    np.multiply(out, x, out)
    np.tanh(out, out)


def blocks(kind: np.dtype | type, *arrays):
    """Cut contiguous arrays of one size into flat blocks that fit the cache, each with two scratch arrays."""
    flat = [array.reshape(-1) for array in arrays]
    size = flat[0].size
    scratch = np.empty((2, min(size, BLOCK)), kind)
    for start in range(0, size, BLOCK):
        parts = [array[start : start + BLOCK] for array in flat]
        yield *parts, scratch[:, : parts[0].size]


@native
def erf(x: np.ndarray):
    """Return the error function of an array of any float type."""
    if x.dtype == np.float64:
        return _erf_float64(x)
    source = np.ascontiguousarray(x, np.float32)
    out = np.empty_like(source)
    for part, result, scratch in blocks(np.float32, source, out):
        erf_float32(part, result, scratch)
    return out.reshape(x.shape).astype(x.dtype, copy=False)[()]


@native
def erf_gradient(grad: np.ndarray, x: np.ndarray):
    """Return grad · 2/√π · exp(−x²)."""
    wide = widened(x)
    return rounded(grad * (np.exp(-(wide * wide)) * (2 / math.sqrt(math.pi))), grad.dtype)


_erf_float64 = in_float64(erf_float64)


@native
@in_float64
def erfc(x: np.ndarray):
    """Return 1 − erf(x), exact where it is small."""
    out = np.empty_like(x)
    near = np.abs(x) <= _NEAR
    out[near] = 1 - _erf_near(x[near])
    z = x[~near]
    small = exp_of_square(np.abs(z), -1) * _scaled_tail(np.abs(z))
    out[~near] = np.where(z > 0, small, 2 - small)
    return out


@in_float64
def erfcx(x: np.ndarray):
    """Return exp(x²) · erfc(x)."""
    out = np.empty_like(x)
    near = np.abs(x) <= _NEAR
    z = x[near]
    out[near] = np.exp(z * z) * (1 - _erf_near(z))
    z = x[~near]
    small = _scaled_tail(np.abs(z))
    out[~near] = np.where(z > 0, small, 2 * exp_of_square(z, 1) - small)
    return out


def erfcinv_float64(p: np.ndarray) -> np.ndarray:
    """Return y ≥ 0 with erfc(y) = p, for 0 ≤ p ≤ 1 in a flat float64 array.

    Newton's method on log erfc, which is nearly a parabola: four steps from Giles's starting value.
    """
    y = _first_erfcinv(p)
    for _ in range(4):
        scaled = erfcx(y)
        step = (np.log(scaled) - y * y - np.log(p)) * scaled * (math.sqrt(math.pi) / 2)
        y = y + np.where(np.isfinite(step), step, 0)
    return np.where(p == 0, np.inf, y)


def _first_erfcinv(p: np.ndarray):
    """Return a starting value: the leading terms of erfcinv for small p, a root's inverse near 1.

    Source: S. Winitzki, "A handy approximation for the error function and its inverse" (2008): error 2e-3.
    """
    constant = 0.147
    log = np.log(p * (2 - p))
    half = 2 / (math.pi * constant) + log / 2
    return np.sqrt(np.maximum(np.sqrt(half * half - log / constant) - half, 0))


@native
@in_float64
def erfinv(x: np.ndarray):
    """Return y with erf(y) = x."""
    out = np.full_like(x, np.nan)
    small = np.abs(x) < 0.5
    z = x[small]
    y = np.copysign(_first_erfcinv(1 - np.abs(z)), z)
    for _ in range(3):
        y = y - (erf_float64(y) - z) * np.exp(y * y) * (math.sqrt(math.pi) / 2)
    out[small] = y
    inside = ~small & (np.abs(x) <= 1)
    out[inside] = np.copysign(erfcinv_float64(1 - np.abs(x[inside])), x[inside])
    return out


@in_float64
def ndtri(p: np.ndarray):
    """Return the number that a standard normal variable stays below with probability p."""
    out = np.full_like(p, np.nan)
    inside = (p >= 0) & (p <= 1)
    z = p[inside]
    outer = np.copysign(erfcinv_float64(2 * np.minimum(z, 1 - z)), z - 0.5)
    out[inside] = math.sqrt(2) * np.where(np.abs(z - 0.5) < 0.25, erfinv(2 * z - 1), outer)
    return out


@in_float64
def ndtr(x: np.ndarray):
    """Return the probability that a standard normal variable stays below x."""
    return erfc(x * -math.sqrt(0.5)) / 2


@in_float64
def log_ndtr(x: np.ndarray):
    """Return the logarithm of `ndtr`, exact far below zero."""
    z = x * math.sqrt(0.5)
    below = np.log(erfcx(-np.minimum(z, 0)) / 2) - np.minimum(z, 0) ** 2
    return np.where(x < -1, below, np.log1p(-erfc(z) / 2))
