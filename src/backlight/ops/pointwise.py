"""Functions of one array, element by element: exponentials, logarithms, roots, trigonometry, rounding."""

import math

from backlight.ops.declare import op

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "frac",
    "log",
    "log1p",
    "log2",
    "log10",
    "neg",
    "negative",
    "positive",
    "rad2deg",
    "reciprocal",
    "round",
    "rsqrt",
    "sgn",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]

LN2, LN10 = math.log(2), math.log(10)


@op
def neg(xp, input):
    """Change the sign."""
    return -input


@neg.derivative("input", formula="−grad")
def neg_input(grad):
    return -grad


negative = neg


def positive(input):
    """Return the input itself."""
    return input


@op
def abs(xp, input):
    """Absolute value."""
    return xp.absolute(input)


@abs.derivative("input", formula="grad · sign(input)")
def abs_input(grad, input, ops):
    return grad * ops.sgn(input)


absolute = abs


@op
def sign(xp, input):
    """−1, 0 or 1, by the sign of the input."""
    return xp.sign(input)


@sign.derivative("input", formula="0")
def sign_input(grad):
    return grad * 0


@op
def sgn(xp, input):
    """The same as `sign`, for the real numbers that backlight has."""
    return xp.sign(input)


@sgn.derivative("input", formula="0")
def sgn_input(grad):
    return grad * 0


@op(promote="float")
def reciprocal(xp, input):
    """One divided by the input."""
    return 1 / input


@reciprocal.derivative("input", formula="−grad / input²")
def reciprocal_input(grad, out):
    return -grad * (out * out)


@op(node="PowBackward0")
def square(xp, input):
    """The input times itself."""
    return input * input


@square.derivative("input", formula="2 · grad · input")
def square_input(grad, input):
    return grad * (input * 2)


@op(promote="float")
def sqrt(xp, input):
    """Square root."""
    return xp.sqrt(input)


@sqrt.derivative("input", formula="grad / (2 · √input)")
def sqrt_input(grad, out):
    return grad / (out * 2)


@op(promote="float")
def rsqrt(xp, input):
    """One divided by the square root."""
    return 1 / xp.sqrt(input)


@rsqrt.derivative("input", formula="−½ · grad · input^(−3/2)")
def rsqrt_input(grad, out):
    return grad * -0.5 * (out * out * out)


@op(promote="float")
def exp(xp, input):
    """Exponential function."""
    return xp.exp(input)


@exp.derivative("input", formula="grad · exp(input)")
def exp_input(grad, out):
    return grad * out


@op(promote="float")
def exp2(xp, input):
    """Two to the power of the input."""
    return xp.exp2(input)


@exp2.derivative("input", formula="grad · 2^input · ln 2")
def exp2_input(grad, out):
    return grad * out * LN2


@op(promote="float")
def expm1(xp, input):
    """exp(input) − 1, exact near zero."""
    return xp.expm1(input)


@expm1.derivative("input", formula="grad · exp(input)")
def expm1_input(grad, out):
    return grad * (out + 1)


@op(promote="float")
def log(xp, input):
    """Natural logarithm."""
    return xp.log(input)


@log.derivative("input", formula="grad / input")
def log_input(grad, input):
    return grad / input


@op(promote="float")
def log2(xp, input):
    """Logarithm to the base 2."""
    return xp.log2(input)


@log2.derivative("input", formula="grad / (input · ln 2)")
def log2_input(grad, input):
    return grad / (input * LN2)


@op(promote="float")
def log10(xp, input):
    """Logarithm to the base 10."""
    return xp.log10(input)


@log10.derivative("input", formula="grad / (input · ln 10)")
def log10_input(grad, input):
    return grad / (input * LN10)


@op(promote="float")
def log1p(xp, input):
    """log(1 + input), exact near zero."""
    return xp.log1p(input)


@log1p.derivative("input", formula="grad / (1 + input)")
def log1p_input(grad, input):
    return grad / (input + 1)


@op(promote="float")
def sin(xp, input):
    """Sine."""
    return xp.sin(input)


@sin.derivative("input", formula="grad · cos(input)")
def sin_input(grad, input, ops):
    return grad * ops.cos(input)


@op(promote="float")
def cos(xp, input):
    """Cosine."""
    return xp.cos(input)


@cos.derivative("input", formula="−grad · sin(input)")
def cos_input(grad, input, ops):
    return -grad * ops.sin(input)


@op(promote="float")
def tan(xp, input):
    """Tangent."""
    return xp.tan(input)


@tan.derivative("input", formula="grad · (1 + tan(input)²)")
def tan_input(grad, out):
    return grad + grad * (out * out)


@op(promote="float")
def asin(xp, input):
    """Inverse sine."""
    return xp.arcsin(input)


@asin.derivative("input", formula="grad / √(1 − input²)")
def asin_input(grad, input, ops):
    return grad * ops.rsqrt(1 - input * input)


@op(promote="float")
def acos(xp, input):
    """Inverse cosine."""
    return xp.arccos(input)


@acos.derivative("input", formula="−grad / √(1 − input²)")
def acos_input(grad, input, ops):
    return -grad * ops.rsqrt(1 - input * input)


@op(promote="float")
def atan(xp, input):
    """Inverse tangent."""
    return xp.arctan(input)


@atan.derivative("input", formula="grad / (1 + input²)")
def atan_input(grad, input):
    return grad / (1 + input * input)


@op(promote="float")
def sinh(xp, input):
    """Hyperbolic sine."""
    return xp.sinh(input)


@sinh.derivative("input", formula="grad · cosh(input)")
def sinh_input(grad, input, ops):
    return grad * ops.cosh(input)


@op(promote="float")
def cosh(xp, input):
    """Hyperbolic cosine."""
    return xp.cosh(input)


@cosh.derivative("input", formula="grad · sinh(input)")
def cosh_input(grad, input, ops):
    return grad * ops.sinh(input)


@op(promote="float")
def tanh(xp, input):
    """Hyperbolic tangent."""
    return xp.tanh(input)


@tanh.derivative("input", formula="grad · (1 − tanh(input)²)")
def tanh_input(grad, out):
    return grad - grad * (out * out)


@op(promote="float")
def asinh(xp, input):
    """Inverse hyperbolic sine."""
    return xp.arcsinh(input)


@asinh.derivative("input", formula="grad / √(input² + 1)")
def asinh_input(grad, input, ops):
    return grad * ops.rsqrt(input * input + 1)


@op(promote="float")
def acosh(xp, input):
    """Inverse hyperbolic cosine."""
    return xp.arccosh(input)


@acosh.derivative("input", formula="grad / √(input² − 1)")
def acosh_input(grad, input, ops):
    return grad * (ops.rsqrt(input - 1) * ops.rsqrt(input + 1))


@op(promote="float")
def atanh(xp, input):
    """Inverse hyperbolic tangent."""
    return xp.arctanh(input)


@atanh.derivative("input", formula="grad / (1 − input²)")
def atanh_input(grad, input):
    return grad / (1 - input * input)


arccos, arccosh, arcsin, arcsinh, arctan, arctanh = acos, acosh, asin, asinh, atan, atanh


@op
def floor(xp, input):
    """The largest integer that is not above the input."""
    return xp.floor(input).astype(input.dtype)


@floor.derivative("input", formula="0")
def floor_input(grad):
    return grad * 0


@op
def ceil(xp, input):
    """The smallest integer that is not below the input."""
    return xp.ceil(input).astype(input.dtype)


@ceil.derivative("input", formula="0")
def ceil_input(grad):
    return grad * 0


@op
def trunc(xp, input):
    """The input without its fraction."""
    return xp.trunc(input).astype(input.dtype)


@trunc.derivative("input", formula="0")
def trunc_input(grad):
    return grad * 0


fix = trunc


@op
def frac(xp, input):
    """The fraction of the input, with its sign."""
    return input - xp.trunc(input)


@frac.derivative("input", formula="grad")
def frac_input(grad):
    return grad


@op
def round(xp, input, *, decimals: int = 0):
    """The nearest integer (of two, the even one), or the nearest number of so many decimals."""
    if decimals == 0:
        return xp.rint(input).astype(input.dtype)
    scale = 10.0 ** math.fabs(decimals)
    scaled = input * scale if decimals > 0 else input / scale
    return (xp.rint(scaled) / scale if decimals > 0 else xp.rint(scaled) * scale).astype(input.dtype)


@round.derivative("input", formula="0")
def round_input(grad):
    return grad * 0


@op(promote="float")
def deg2rad(xp, input):
    """Degrees to radians."""
    return input * input.dtype.type(math.pi / 180)


@deg2rad.derivative("input", formula="grad · π / 180")
def deg2rad_input(grad):
    return grad * (math.pi / 180)


@op(promote="float")
def rad2deg(xp, input):
    """Radians to degrees."""
    return input * input.dtype.type(180 / math.pi)


@rad2deg.derivative("input", formula="grad · 180 / π")
def rad2deg_input(grad):
    return grad * (180 / math.pi)


@op(promote="float")
def sinc(xp, input):
    """sin(πx) / (πx), and 1 at 0."""
    angle, one = input * input.dtype.type(math.pi), input.dtype.type(1)
    return xp.where(input == 0, one, xp.sin(angle) / xp.where(input == 0, one, angle))


@sinc.derivative("input", formula="grad · (cos(πx) − sinc(x)) / x, and 0 at 0")
def sinc_input(grad, input, ops):
    zero = input == 0
    safe = ops.where(zero, ops.ones_as(input), input)
    angle = safe * math.pi
    slope = (angle * ops.cos(angle) - ops.sin(angle)) / (angle * safe)
    flat = input * (-math.pi * math.pi / 3)  # the slope near 0, so that the second derivative is right there too
    return grad * ops.where(zero, flat, slope)
