"""The error function, the gamma function, Bessel functions and their families; logarithms with a factor."""

import math
from collections.abc import Callable

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import is_number
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import over_memory
from backlight.kernels.special import erf as erf_kernels
from backlight.kernels.special import gamma as gamma_kernels
from backlight.kernels.special import modified_bessel as bessel_kernels
from backlight.ops.number_operands import floats_of_four_bytes, like
from backlight.ops.type_promotion import LONG
from backlight.sizes import require_memory, storage_error

__all__ = ["digamma", "erf", "erfc", "erfinv", "i0", "lgamma", "logit", "mvlgamma", "polygamma", "xlogy"]

MOST_DERIVATIVES = 2**31 - 1
MOST_GAMMAS = 2**27  # numbers that mvlgamma computes in some seconds
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
SQRT_TWO_PI = math.sqrt(2 * math.pi)


@op(promote="float", tangent="symmetric")
def erf(xp, input: Array):
    """Error function: 2/√π · ∫ exp(−t²) dt from 0 to the input."""
    return erf_kernels.erf(input) if input.flags.c_contiguous else over_memory(input, erf_kernels.erf)


erf.derivative("input", formula="grad · 2/√π · exp(−input²)")(lambda grad, input, ops: ops.erf_backward(grad, input))


@op(node="MulBackward0", tangent="symmetric")
def erf_backward(xp, arrived: Array, input: Array):
    """arrived · 2/√π · exp(−input²)."""
    return erf_kernels.erf_gradient(arrived, input)


erf_backward.derivative("arrived", formula="grad · 2/√π · exp(−input²)")(
    lambda grad, input, ops: ops.erf_backward(grad, input)
)
erf_backward.derivative("input", formula="−2 · grad · arrived · input · 2/√π · exp(−input²)")(
    lambda grad, arrived, input, ops: ops.erf_backward(grad * arrived, input) * input * -2
)


@op(promote="float", tangent="symmetric")
def erfc(xp, input: Array):
    """1 − erf(input), exact where it is small."""
    return erf_kernels.erfc(input)


erfc.derivative("input", formula="−grad · 2/√π · exp(−input²)")(
    lambda grad, input, ops: grad * ops.exp(-(input * input)) * -TWO_OVER_SQRT_PI
)


@op(promote="float", name="special_erfcx", tangent="symmetric", dtype_error=floats_of_four_bytes("erfcx_cpu"))
def erfcx(xp, input: Array):
    """exp(input²) · erfc(input)."""
    return erf_kernels.erfcx(input)


erfcx.derivative("input", formula="grad · (2 · input · out − 2/√π)")(
    lambda grad, input, out: grad * (2 * input * out - TWO_OVER_SQRT_PI)
)


@op(promote="float", tangent="symmetric")
def erfinv(xp, input: Array):
    """The inverse of the error function."""
    return erf_kernels.erfinv(input)


erfinv.derivative("input", formula="grad · √π/2 · exp(out²)")(
    lambda grad, out, ops: grad * ops.exp(out * out) * (1 / TWO_OVER_SQRT_PI)
)


@op(promote="float", name="special_ndtr", node="MulBackward0", tangent="symmetric")
def ndtr(xp, input: Array):
    """The probability that a standard normal variable stays below the input."""
    return erf_kernels.ndtr(input)


ndtr.derivative("input", formula="grad · exp(−input²/2) / √(2π)")(
    lambda grad, input, ops: grad * ops.exp(input * input * -0.5) * (1 / SQRT_TWO_PI)
)


@op(promote="float", name="special_log_ndtr", tangent="symmetric", dtype_error=floats_of_four_bytes("log_ndtr_cpu"))
def log_ndtr(xp, input: Array):
    """The logarithm of `ndtr`, exact far below zero."""
    return erf_kernels.log_ndtr(input)


log_ndtr.derivative("input", formula="grad · √(2/π) / erfcx(−input / √2)")(
    lambda grad, input, ops: grad / ops.special_erfcx(input * -math.sqrt(0.5)) * math.sqrt(2 / math.pi)
)


@op(promote="float", name="special_ndtri", tangent="symmetric", dtype_error=floats_of_four_bytes("ndtri_cpu"))
def ndtri(xp, input: Array):
    """The number below which a standard normal variable stays with probability `input`."""
    return erf_kernels.ndtri(input)


ndtri.derivative("input", formula="grad · √(2π) · exp(out²/2)")(
    lambda grad, out, ops: grad * ops.exp(out * out * 0.5) * SQRT_TWO_PI
)


@op(promote="float", tangent="symmetric")
def lgamma(xp, input: Array):
    """The logarithm of |Γ(input)|."""
    return gamma_kernels.lgamma(input)


lgamma.derivative("input", formula="grad · ψ(input)")(lambda grad, input, ops: grad * ops.digamma(input))


@op(promote="float", tangent="symmetric")
def digamma(xp, input: Array):
    """ψ, the derivative of lgamma."""
    return gamma_kernels.digamma(input)


digamma.derivative("input", formula="grad · ψ′(input)")(lambda grad, input, ops: grad * ops.polygamma(input, 1))


@op(name="polygamma", promote="float", tangent="symmetric")
def polygamma_of(xp, input: Array, n: int):
    """The n-th derivative of digamma."""
    return gamma_kernels.polygamma(n, input)


polygamma_of.derivative("input", formula="grad · ψ⁽ⁿ⁺¹⁾(input)")(
    lambda grad, input, n, ops: grad * ops.polygamma(input, n + 1)
)


def polygamma(n: int, input: TensorState):
    """Return the n-th derivative of digamma.

    Raises:
        RuntimeError: n is negative.
    """
    if n < 0:
        raise ShapeError("polygamma(n, x) does not support negative n.")
    if n >= MOST_DERIVATIVES:
        if n >= LONG:
            raise ValueProblem(f"Overflow when unpacking long long; n must be less than {MOST_DERIVATIVES}, got {n}")
        raise ShapeError(f"polygamma(n, x) does not support n of 2**31 - 1 or more, got {n}")
    return polygamma_of(input, n)


def _refuse_bools(kind: np.dtype):
    return "The input tensor may not be a boolean tensor.; convert it with .float()" if kind.kind == "b" else None


@op(name="mvlgamma", dtype_error=_refuse_bools, promote="float", tangent="symmetric", layout="rows")
def mvlgamma_of(xp, input: Array, p: int):
    """The logarithm of the gamma function of p dimensions."""
    x = widened(input)
    require_memory((*x.shape, p), x.dtype)
    if x.size * p > MOST_GAMMAS:
        raise storage_error((*x.shape, p), x.dtype.itemsize)
    total = x.dtype.type(0)
    for start in range(0, p, 4096):
        halves = np.arange(start, min(p, start + 4096)).astype(x.dtype) / 2
        total = total + gamma_kernels.lgamma(x[..., None] - halves).sum(-1)
    return rounded(total + p * (p - 1) / 4 * math.log(math.pi), input.dtype)


@mvlgamma_of.derivative("input", formula="grad · Σ ψ(input − j/2) over j < p")
def mvlgamma_of_input(grad: Array, input: Array, p: int, ops):
    total = ops.digamma(input)
    for j in range(1, p):
        total = total + ops.digamma(input - j / 2)
    return grad * total


def mvlgamma(input: TensorState, p: int):
    """Return the logarithm of the gamma function of p dimensions: Σ lgamma(input − j/2) + p(p−1)/4 · log π.

    Raises:
        RuntimeError: p is not positive.
    """
    if p < 1:
        raise ShapeError("p has to be greater than or equal to 1")
    return mvlgamma_of(input, p)


@op(promote="float", tangent="symmetric")
def i0(xp, input: Array):
    """The modified Bessel function of the first kind, of order 0."""
    return bessel_kernels.i0(input)


i0.derivative("input", formula="grad · i1(input)")(lambda grad, input, ops: grad * ops.special_i1(input))


@op(promote="float", name="special_i0e", node="SpecialI0EBackward0", tangent="symmetric")
def i0e(xp, input: Array):
    """exp(−|input|) · i0(input)."""
    return bessel_kernels.i0e(input)


i0e.derivative("input", formula="grad · (i1e(input) − sign(input) · out)")(
    lambda grad, input, out, ops: grad * (ops.special_i1e(input) - ops.sgn(input) * out)
)


@op(promote="float", name="special_i1", tangent="symmetric")
def i1(xp, input: Array):
    """The modified Bessel function of the first kind, of order 1."""
    return bessel_kernels.i1(input)


@i1.derivative("input", formula="grad · (i0(input) − out / input), ½ · grad at 0")
def i1_input(grad: Array, input: Array, out: Array, ops):
    zero = input == 0
    return grad * (ops.i0(input) - (out + zero) / (input + zero * 2))


@op(promote="float", name="special_i1e", node="SpecialI1EBackward0", tangent="symmetric")
def i1e(xp, input: Array):
    """exp(−|input|) · i1(input)."""
    return bessel_kernels.i1e(input)


@i1e.derivative("input", formula="grad · (i0e(input) − out · (sign(input) + 1 / input)), ½ · grad at 0")
def i1e_input(grad: Array, input: Array, out: Array, ops):
    zero = input == 0
    return grad * (ops.special_i0e(input) - out * ops.sgn(input) - (out + zero) / (input + zero * 2))


def _product(xp, input: Array, other: Array, logarithm: Callable):
    """Return input · logarithm(other), and 0 where the input is 0 and `other` not NaN."""
    off = (input == 0) & (other == other)
    return xp.where(off, like(input, 0), input * logarithm(other))[()]


@op(name="xlogy", promote="float", tangent="symmetric")
def xlogy_tensors(xp, input: Array, other: Array):
    """input · log(other), and 0 where `input` is 0."""
    return _product(xp, input, other, xp.log)


xlogy_tensors.derivative("input", formula="grad · log(other), 0 where input is 0 and other ≤ 0")(
    lambda grad, input, other, ops: ops.kept(ops.xlogy(grad, other), ~((input == 0) & (other <= 0)))
)
xlogy_tensors.derivative("other", formula="grad · input / other")(lambda grad, input, other: grad * input / other)


@op(promote="float", node="XlogyBackward1", tangent="symmetric")
def xlogy_of_number(xp, other: Array, input: Array):
    """input · log(other), where `input` is a number."""
    return _product(xp, input, other, xp.log)


xlogy_of_number.derivative("other", formula="grad · input / other")(lambda grad, input, other: grad * input / other)


@op(promote="float", node="XlogyBackward2", tangent="symmetric")
def xlogy_to_number(xp, input: Array, other: Array):
    """input · log(other), where `other` is a number."""
    return _product(xp, input, other, xp.log)


xlogy_to_number.derivative("input", formula="grad · log(other), 0 where input is 0 and other ≤ 0")(
    lambda grad, input, other, ops: ops.kept(ops.xlogy(grad, other), ~((input == 0) & (other <= 0)))
)


def xlogy(input: TensorState | float, other: TensorState | float):
    """Return input · log(other), and 0 where `input` is 0; one of the two may be a number."""
    if not isinstance(other, TensorState) and is_number(other):
        return xlogy_to_number(input, other)
    if not isinstance(input, TensorState) and is_number(input):
        return xlogy_of_number(other, input)
    return xlogy_tensors(input, other)


@op(name="special_xlog1py", promote="float", node="SpecialXlog1PyBackward0", tangent="symmetric")
def xlog1py_tensors(xp, input: Array, other: Array):
    """input · log(1 + other), and 0 where `input` is 0."""
    return _product(xp, input, other, xp.log1p)


xlog1py_tensors.derivative("input", formula="grad · log(1 + other), 0 where input is 0 and other ≤ −1")(
    lambda grad, input, other, ops: ops.kept(ops.special_xlog1py(grad, other), ~((input == 0) & (other <= -1)))
)
xlog1py_tensors.derivative("other", formula="grad · input / (1 + other)")(
    lambda grad, input, other: grad * input / (other + 1)
)


@op(promote="float", node="SpecialXlog1PyBackward1", tangent="symmetric")
def xlog1py_of_number(xp, other: Array, input: Array):
    """input · log(1 + other), where `input` is a number."""
    return _product(xp, input, other, xp.log1p)


xlog1py_of_number.derivative("other", formula="grad · input / (1 + other)")(
    lambda grad, input, other: grad * input / (other + 1)
)


@op(promote="float", node="SpecialXlog1PyBackward2", tangent="symmetric")
def xlog1py_to_number(xp, input: Array, other: Array):
    """input · log(1 + other), where `other` is a number."""
    return _product(xp, input, other, xp.log1p)


xlog1py_to_number.derivative("input", formula="grad · log(1 + other), 0 where input is 0 and other ≤ −1")(
    lambda grad, input, other, ops: ops.kept(ops.special_xlog1py(grad, other), ~((input == 0) & (other <= -1)))
)


def xlog1py(input: TensorState | float, other: TensorState | float):
    """Return input · log(1 + other), and 0 where `input` is 0; one of the two may be a number."""
    if not isinstance(other, TensorState) and is_number(other):
        return xlog1py_to_number(input, other)
    if not isinstance(input, TensorState) and is_number(input):
        return xlog1py_of_number(other, input)
    return xlog1py_tensors(input, other)


@op(promote="float", name="special_entr", tangent="symmetric")
def entr(xp, input: Array):
    """−input · log(input): 0 at 0, −∞ below."""
    return xp.where(input < 0, like(input, -xp.inf), -_product(xp, input, input, xp.log))[()]


entr.derivative("input", formula="−grad · (1 + log(input))")(lambda grad, input, ops: -grad * (ops.log(input) + 1))


@op(name="logit", promote="float", tangent="symmetric")
def logit_between(xp, input: Array, eps: float | None):
    """log(p / (1 − p)) of the input, which is brought into [eps, 1 − eps] first if eps is given."""
    p = widened(input) if eps is None else xp.clip(widened(input), eps, 1 - eps)
    return rounded(xp.log(p / (1 - p)), input.dtype)


@logit_between.derivative("input", formula="grad / (input · (1 − input)), 0 outside [eps, 1 − eps]")
def logit_between_input(grad: Array, input: Array, eps: float | None, ops):
    gradient = grad / (input * (1 - input))
    if eps is None:
        return ops.where((input >= 0) & (input <= 1), gradient, math.nan)
    return ops.kept(gradient, ~((input < eps) | (input > 1 - eps)))


def logit(input: TensorState, eps: float | None = None):
    """Return log(p / (1 − p)), the inverse of sigmoid; `eps` keeps p away from 0 and 1."""
    return logit_between(input, eps)
