"""Special functions that NumPy lacks: erf and its family, gamma and its family.

The constants of erf and erfc were computed with 50 digits: a power series of erf(x)/x in x² on |x| < 1, fitted at
Chebyshev points, and Chebyshev coefficients of log(erfc(z) · exp(z²) / t) in 2t − 1, t = 2 / (2 + z).

Sources: W. H. Press et al., Numerical Recipes, 3rd edition, 2007 (the form of erfc); M. Giles, Approximating the erfinv
function, 2010 (the starting value of erfinv).
"""

import math

import numpy as np

from backlight.kernels.halves import rounded

ERF_SERIES = [
    1.1283791670955126,
    -0.37612638903183754,
    0.1128379167095512,
    -0.026866170645129854,
    0.005223977625423455,
    -0.0008548327021945428,
    0.00012055332903350668,
    -1.4925647581008593e-05,
    1.6462045711013026e-06,
    -1.6364645854816389e-07,
    1.479243542696247e-08,
    -1.2164764337224506e-09,
    8.709755232851789e-11,
    -4.2320376764874594e-12,
]
ERFC_CHEBYSHEV = [
    -1.3026537197817094,
    0.6419697923564902,
    0.019476473204185843,
    -0.009561514786808637,
    -0.0009465953444820315,
    0.00036683949785275657,
    4.2523324806912126e-05,
    -2.0278578112537992e-05,
    -1.6242900046439456e-06,
    1.303655835578164e-06,
    1.5626441723664192e-08,
    -8.523809591573633e-08,
    6.5290544391066195e-09,
    5.0593434963457695e-09,
    -9.913641580757367e-10,
    -2.2736511994922345e-10,
    9.646790795509976e-11,
    2.394041816701367e-12,
    -6.886031864848783e-12,
    8.94492796096259e-13,
    3.1308682402880046e-13,
    -1.1270255154648552e-13,
    3.751593359338297e-16,
    7.112186463921715e-15,
    -1.5291705643469587e-15,
    -8.848412307945766e-17,
    1.1508859685539002e-16,
    -2.2488695292601705e-17,
]
# Numerator and denominator of a rational approximation of erf on |x| < 4 in float32, in powers of x², highest first.
ERF32_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
ERF32_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
BLOCK = 1 << 14  # elements that stay in the cache while a chain of passes runs over them
SQRT_HALF = math.sqrt(0.5)


def erf(x):
    """Return the error function: error below 1e-15 in float64, 7e-8 in float32; half precision through float32."""
    x = np.asarray(x)
    if x.dtype == np.float64:
        return _erf64(x)
    out = in_blocks(_erf32_block, x if x.dtype == np.float32 else x.astype(np.float32))
    return rounded(out, x.dtype)


def in_blocks(work, x: np.ndarray) -> np.ndarray:
    """Return a new array filled by `work(block of x, block of out, scratch)`, a block that fits the cache at a time."""
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    scratch = np.empty((2, min(BLOCK, flat.size)), flat.dtype)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        work(part, out[start : start + BLOCK], scratch[:, : part.size])
    return out.reshape(x.shape)


def _erf32_block(x, out, scratch) -> None:
    square, below = scratch
    np.minimum(x, 4, out=out)
    np.maximum(out, -4, out=out)
    np.multiply(out, out, out=square)
    np.multiply(square, np.float32(ERF32_DENOMINATOR[0]), out=below)
    for constant in ERF32_DENOMINATOR[1:-1]:
        below += np.float32(constant)
        below *= square
    below += np.float32(ERF32_DENOMINATOR[-1])
    np.divide(out, below, out=below)
    np.multiply(square, np.float32(ERF32_NUMERATOR[0]), out=out)
    for constant in ERF32_NUMERATOR[1:-1]:
        out += np.float32(constant)
        out *= square
    out += np.float32(ERF32_NUMERATOR[-1])
    out *= below


def _erf64(x):
    near = np.abs(x) < 1
    inside = np.where(near, x, 0.0)
    series = inside * polynomial(inside * inside, ERF_SERIES)
    if near.all():
        return series
    return np.where(near, series, np.copysign(1 - _erfc_positive(np.abs(x)), x))


def polynomial(x, coefficients):
    """Return Σ coefficients[k] · xᵏ by Horner's rule."""
    out = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        out *= x
        out += coefficient
    return out


def _erfcx_positive(z):
    """Return exp(z²) · erfc(z) for z ≥ 0."""
    t = 2 / (2 + z)
    s = 2 * t - 1
    following = current = np.zeros_like(z)
    for coefficient in ERFC_CHEBYSHEV[:0:-1]:
        current, following = 2 * s * current - following + coefficient, current
    return t * np.exp(s * current - following + 0.5 * ERFC_CHEBYSHEV[0])


def _erfc_positive(z):
    with np.errstate(all="ignore"):
        return np.where(z > 27.5, np.where(z == z, 0.0, z), np.exp(-z * z) * _erfcx_positive(np.minimum(z, 30.0)))


def erfc(x):
    """Return 1 − erf(x), exact in its small values too; half precision through float32."""
    x = np.asarray(x)
    wide = x.astype(np.float64)
    positive = _erfc_positive(np.abs(wide))
    tail = np.where(wide >= 0, positive, 2 - positive)
    return rounded(np.where(np.abs(wide) < 0.5, 1 - _erf64(wide), tail), x.dtype)


def erfcx(x):
    """Return exp(x²) · erfc(x), which does not underflow."""
    x = np.asarray(x)
    wide = x.astype(np.float64)
    positive = _erfcx_positive(np.abs(wide))
    with np.errstate(all="ignore"):
        return rounded(np.where(wide >= 0, positive, 2 * np.exp(wide * wide) - positive), x.dtype)


def erfinv(x):
    """Return the inverse of erf: a starting value by Giles, then Newton's method with Halley's correction."""
    x = np.asarray(x)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        w = -np.log((1 - wide) * (1 + wide))
        root = np.sqrt(w)
        central = polynomial(w - 2.5, _GILES_CENTRAL)
        tail = polynomial(np.where(w < 5, 0.0, root - 3), _GILES_TAIL)
        guess = np.where(w < 5, central, tail) * wide
        for _ in range(3):
            from_tail = (1 - np.abs(wide) - erfc(np.abs(guess))) * np.sign(wide)
            signed = np.where(np.abs(wide) > 0.5, from_tail, erf(guess) - wide)
            slope = 2 / math.sqrt(math.pi) * np.exp(-guess * guess)
            step = signed / slope
            moved = guess - step / (1 + guess * step)
            guess = np.where(np.isfinite(moved), moved, guess)
        out = np.where(np.abs(wide) == 1, wide * np.inf, np.where(np.abs(wide) > 1, np.nan, guess))
    return rounded(out, x.dtype)


_GILES_CENTRAL = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_GILES_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def normal_cdf(x):
    """Return the distribution function of the standard normal, ½ · erfc(−x / √2)."""
    x = np.asarray(x)
    if x.dtype == np.float64:
        return 0.5 * erfc(-x * SQRT_HALF)
    half = x.dtype.type(0.5)
    return erf(x * x.dtype.type(SQRT_HALF)) * half + half


def _lgamma_of_one(value: float) -> float:
    """Return log|Γ|, infinite at the poles."""
    if value <= 0 and value == math.floor(value):
        return math.inf
    return math.lgamma(value)


_lgamma = np.frompyfunc(_lgamma_of_one, 1, 1)


def lgamma(x):
    """Return log|Γ(x)|, by the C library."""
    x = np.asarray(x)
    return rounded(np.asarray(_lgamma(x.astype(np.float64)), np.float64), x.dtype)


def digamma(x):
    """Return the derivative of log Γ: recurrence up to 10, Stirling's series, reflection for x < ½."""
    x = np.asarray(x)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mirrored = np.where(wide < 0.5, 1 - wide, wide)
        out = _digamma_positive(mirrored)
        turns = wide - np.round(wide)
        reflected = out - math.pi / np.tan(math.pi * turns)
        poles = np.where(wide == 0, -np.copysign(np.inf, wide), np.where(turns == 0, np.nan, reflected))
        return rounded(np.where(wide < 0.5, poles, out), x.dtype)


def _digamma_positive(x):
    shift = np.zeros_like(x)
    for _ in range(10):
        small = x < 10
        shift = np.where(small, shift - 1 / x, shift)
        x = np.where(small, x + 1, x)
    inverse = 1 / (x * x)
    tail = polynomial(inverse, _DIGAMMA_SERIES) * inverse
    return shift + np.log(x) - 0.5 / x - tail


# B₂ₖ / 2k for k = 1 …
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def zeta(s: float, q):
    """Return Hurwitz's zeta function Σ (q + k)^(−s) by Euler's and Maclaurin's formula, for q > 0 and s > 1."""
    q = np.asarray(q, np.float64)
    count = 12
    total = sum((q + k) ** -s for k in range(count))
    end = q + count
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end**-s
    factor, power = s, end ** (-s - 1)
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        total = total + bernoulli / math.factorial(2 * k) * factor * power
        factor *= (s + 2 * k - 1) * (s + 2 * k)
        power = power / (end * end)
    return total


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: int, x):
    """Return the n-th derivative of digamma: (−1)^(n+1) · n! · ζ(n + 1, x)."""
    x = np.asarray(x)
    if n == 0:
        return digamma(x)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if np.any(wide <= 0):
            out = _polygamma_below(n, wide)
        else:
            out = (-1) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, wide)
    return rounded(np.asarray(out), x.dtype)


def _polygamma_below(n: int, x):
    """Use ψ(x) = ψ(x + m) − (−1)ⁿ n! Σ (x + k)^(−n−1) to come from x ≤ 0 to the right of 0."""
    steps = np.maximum(0, 1 - np.floor(np.where(np.isfinite(x), x, 1))).astype(np.int64)
    total, place = np.zeros_like(x), x.copy()
    for _ in range(int(steps.max(initial=0))):
        left = place <= 0
        total = np.where(left, total + place ** (-n - 1.0), total)
        place = np.where(left, place + 1, place)
    return (-1) ** (n + 1) * math.factorial(n) * (total + zeta(n + 1.0, place))
