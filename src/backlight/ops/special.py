"""The error function and its family, the gamma function and its family, logit, xlogy."""

import math

import ml_dtypes

from backlight.kernels import special as kernels
from backlight.ops.declare import op

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "heaviside",
    "lgamma",
    "logit",
    "mvlgamma",
    "nan_to_num",
    "polygamma",
    "xlogy",
]

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


@op(promote="float")
def erf(xp, input):
    """Error function."""
    return kernels.erf(input)


@erf.derivative("input", formula="grad · 2/√π · exp(−input²)")
def erf_input(grad, input, ops):
    return grad * (ops.exp(-(input * input)) * TWO_OVER_SQRT_PI)


@op(promote="float")
def erfc(xp, input):
    """1 − erf(input)."""
    return kernels.erfc(input)


@erfc.derivative("input", formula="−grad · 2/√π · exp(−input²)")
def erfc_input(grad, input, ops):
    return grad * (ops.exp(-(input * input)) * -TWO_OVER_SQRT_PI)


@op(promote="float", name="special_erfcx", node="SpecialErfcxBackward0")
def erfcx(xp, input):
    """exp(input²) · erfc(input)."""
    return kernels.erfcx(input)


@erfcx.derivative("input", formula="grad · (2 · input · out − 2/√π)")
def erfcx_input(grad, input, out):
    return grad * (input * out * 2 - TWO_OVER_SQRT_PI)


@op(promote="float")
def erfinv(xp, input):
    """Inverse of the error function."""
    return kernels.erfinv(input)


@erfinv.derivative("input", formula="grad · √π/2 · exp(out²)")
def erfinv_input(grad, out, ops):
    return grad * (ops.exp(out * out) / TWO_OVER_SQRT_PI)


@op(promote="float", name="special_ndtr", node="MulBackward0")
def ndtr(xp, input):
    """Distribution function of the standard normal."""
    return kernels.normal_cdf(input)


@ndtr.derivative("input", formula="grad · exp(−input²/2) / √(2π)")
def ndtr_input(grad, input, ops):
    return grad * (ops.exp(input * input * -0.5) / math.sqrt(2 * math.pi))


@op(promote="float")
def lgamma(xp, input):
    """log|Γ(input)|."""
    return kernels.lgamma(input)


@lgamma.derivative("input", formula="grad · ψ(input)")
def lgamma_input(grad, input, ops):
    return grad * ops.digamma(input)


@op(promote="float")
def digamma(xp, input):
    """Derivative of log Γ."""
    return kernels.digamma(input)


@digamma.derivative("input", formula="grad · ψ′(input)")
def digamma_input(grad, input, ops):
    return grad * ops.polygamma_of(input, 1)


@op(promote="float", node="PolygammaBackward0")
def polygamma_of(xp, input, n: int):
    """The n-th derivative of digamma."""
    return kernels.polygamma(n, input)


@polygamma_of.derivative("input", formula="grad · ψ⁽ⁿ⁺¹⁾(input)")
def polygamma_of_input(grad, input, n, ops):
    return grad * ops.polygamma_of(input, n + 1)


def polygamma(n: int, input):
    """Return the n-th derivative of digamma.

    Raises:
        RuntimeError: n is negative.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(input) if n == 0 else polygamma_of(input, n)


def mvlgamma(input, p: int):
    """Return the multivariate log-gamma function of dimension p."""
    from_number = p * (p - 1) / 4 * math.log(math.pi)
    total = lgamma(input)
    for i in range(1, p):
        total = total + lgamma(input - i / 2)
    return total + from_number


@op(promote="float")
def xlogy(xp, input, other):
    """input · log(other), and 0 where input is 0 and other is not NaN."""
    return xp.where((input == 0) & (other == other), input.dtype.type(0), input * xp.log(other))


@xlogy.derivative("input", formula="grad · log(other), 0 where input is 0 and other ≤ 0")
def xlogy_input(grad, input, other, ops):
    off = (input == 0) & (other <= 0)
    slope = ops.log(ops.where(off, ops.ones_as(other), other))
    return grad * ops.where(off, ops.zeros_as(slope), slope)


@xlogy.derivative("other", formula="grad · input / other")
def xlogy_other(grad, input, other):
    return grad * input / other


@op(promote="float", name="special_xlog1py", node="SpecialXlog1PyBackward0")
def xlog1py(xp, input, other):
    """input · log(1 + other), and 0 where input is 0 and other is not NaN."""
    return xp.where((input == 0) & (other == other), input.dtype.type(0), input * xp.log1p(other))


@xlog1py.derivative("input", formula="grad · log(1 + other), 0 where input is 0 and other ≤ −1")
def xlog1py_input(grad, input, other, ops):
    off = (input == 0) & (other <= -1)
    slope = ops.log1p(ops.where(off, ops.zeros_as(other), other))
    return grad * ops.where(off, ops.zeros_as(slope), slope)


@xlog1py.derivative("other", formula="grad · input / (1 + other)")
def xlog1py_other(grad, input, other):
    return grad * input / (other + 1)


@op(promote="float", node="LogitBackward0")
def logit_of(xp, input, eps: float | None = None):
    """log(p / (1 − p)) of p, which is brought into [eps, 1 − eps] first if eps is given."""
    p = input if eps is None else xp.minimum(xp.maximum(input, input.dtype.type(eps)), input.dtype.type(1 - eps))
    return xp.log(p / (1 - p))


@logit_of.derivative("input", formula="grad / (p · (1 − p)), 0 outside [eps, 1 − eps]")
def logit_of_input(grad, input, eps, ops):
    slope = grad / (input * (1 - input))
    if eps is None:
        return ops.where((input >= 0) & (input <= 1), slope, ops.zeros_as(slope) * math.nan)
    return ops.where((input >= eps) & (input <= 1 - eps), slope, ops.zeros_as(slope))


def logit(input, eps: float | None = None):
    """Return log(p / (1 − p)), the inverse of sigmoid."""
    return logit_of(input, eps)


@op(promote="same")
def heaviside(xp, input, values):
    """0 below 0, `values` at 0, 1 above."""
    return xp.where(input == 0, values, (input > 0).astype(input.dtype)).astype(input.dtype)


@op
def nan_to_num(xp, input, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None):
    """Replace NaN and the infinities, by default by 0 and the dtype's largest and smallest number."""
    if input.dtype.kind in "iub":
        return xp.array(input)
    kind, limits = input.dtype.type, ml_dtypes.finfo(input.dtype)
    high = limits.max if posinf is None else kind(posinf)
    low = limits.min if neginf is None else kind(neginf)
    bounded = xp.where(input == xp.inf, high, xp.where(input == -xp.inf, low, input))
    return xp.where(input != input, kind(0 if nan is None else nan), bounded).astype(input.dtype)


@nan_to_num.derivative("input", formula="grad where input is finite, else 0")
def nan_to_num_input(grad, input, ops):
    return ops.where(ops.isfinite(input), grad, ops.zeros_as(grad))
