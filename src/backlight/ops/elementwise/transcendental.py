"""Exponentials, logarithms, trigonometric and hyperbolic functions."""

import math

from backlight.codegen.declaration import Array, op
from backlight.kernels.elementwise import unary
from backlight.kernels.elementwise.binary import over, times
from backlight.kernels.half_precision import rounded, widened

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "rad2deg",
    "sin",
    "sinc",
    "sinh",
    "tan",
    "tanh",
]

LN2, LN10 = math.log(2), math.log(10)
DEGREE = math.pi / 180


@op(promote="float", tangent="symmetric", complex="holomorphic")
def exp(xp, input: Array):
    """Exponential function."""
    return unary.exp(input)


exp.derivative("input", formula="grad · exp(input)")(lambda grad, out: times(grad, out))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def exp2(xp, input: Array):
    """Two to the power of the input."""
    return xp.exp2(input)


exp2.derivative("input", formula="grad · 2^input · ln 2")(lambda grad, out: grad * out * LN2)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def expm1(xp, input: Array):
    """exp(input) − 1, exact near zero."""
    return unary.expm1(input)


expm1.derivative("input", formula="grad · exp(input)")(lambda grad, out: grad * (out + 1))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def log(xp, input: Array):
    """Natural logarithm."""
    return unary.log(input)


@log.derivative("input", formula="grad / input")
def log_input(grad: Array, input: Array):
    return over(grad, input)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def log2(xp, input: Array):
    """Logarithm to the base 2."""
    return xp.log2(input)


log2.derivative("input", formula="grad / (input · ln 2)")(lambda grad, input: grad / (input * LN2))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def log10(xp, input: Array):
    """Logarithm to the base 10."""
    return xp.log10(input)


log10.derivative("input", formula="grad / (input · ln 10)")(lambda grad, input: grad / (input * LN10))


@op(promote="float", node="Log1PBackward0", tangent="symmetric", complex="holomorphic")
def log1p(xp, input: Array):
    """log(1 + input), exact near zero."""
    return unary.log1p(input)


log1p.derivative("input", formula="grad / (1 + input)")(lambda grad, input: grad / (input + 1))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sin(xp, input: Array):
    """Sine."""
    return xp.sin(input)


sin.derivative("input", formula="grad · cos(input)")(lambda grad, input, ops: grad * ops.cos(input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def cos(xp, input: Array):
    """Cosine."""
    return xp.cos(input)


cos.derivative("input", formula="−grad · sin(input)")(lambda grad, input, ops: -grad * ops.sin(input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def tan(xp, input: Array):
    """Tangent."""
    return xp.tan(input)


tan.derivative("input", formula="grad · (1 + tan(input)²)")(lambda grad, out: grad + grad * (out * out))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def asin(xp, input: Array):
    """Inverse sine."""
    return xp.arcsin(input)


asin.derivative("input", formula="grad / √(1 − input²)")(lambda grad, input, ops: grad / ops.sqrt(1 - input * input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def acos(xp, input: Array):
    """Inverse cosine."""
    return xp.arccos(input)


acos.derivative("input", formula="−grad / √(1 − input²)")(lambda grad, input, ops: -grad / ops.sqrt(1 - input * input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def atan(xp, input: Array):
    """Inverse tangent."""
    return xp.arctan(input)


atan.derivative("input", formula="grad / (1 + input²)")(lambda grad, input: grad / (1 + input * input))


@op(promote="float", tangent="symmetric")
def atan2(xp, input: Array, other: Array):
    """The angle of the point (other, input) against the first axis."""
    return xp.arctan2(input, other)


@atan2.derivative("input", formula="grad · other / (input² + other²), 0 at the origin")
def atan2_input(grad: Array, input: Array, other: Array, ops):
    square = input * input + other * other
    return grad * (other * ops.masked_fill(1 / square, square == 0, 0))


@atan2.derivative("other", formula="−grad · input / (input² + other²), 0 at the origin")
def atan2_other(grad: Array, input: Array, other: Array, ops):
    square = input * input + other * other
    return -grad * (input * ops.masked_fill(1 / square, square == 0, 0))


@op(promote="float", node="Deg2RadBackward0", tangent="symmetric")
def deg2rad(xp, input: Array):
    """Degrees to radians."""
    return input * input.dtype.type(DEGREE)


deg2rad.derivative("input", formula="grad · π / 180")(lambda grad, ops: ops.scale(grad, DEGREE))


@op(promote="float", node="Rad2DegBackward0", tangent="symmetric")
def rad2deg(xp, input: Array):
    """Radians to degrees."""
    return input * input.dtype.type(1 / DEGREE)


rad2deg.derivative("input", formula="grad · 180 / π")(lambda grad, ops: ops.scale(grad, 1 / DEGREE))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sinc(xp, input: Array):
    """sin(πx) / (πx), and 1 at 0."""
    zero = input == 0
    angle = widened(input) * math.pi + zero
    return rounded(xp.sin(angle) / angle * ~zero + zero, input.dtype)


sinc.derivative("input", formula="grad · (cos(πx) − sinc(x)) / x, 0 at 0")(
    lambda grad, input, ops: grad * ops.sinc_slope(input)
)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sinc_slope(xp, input: Array):
    """The derivative of sinc; near 0, where the difference cancels, by its series."""
    angle = xp.multiply(input, math.pi, dtype=xp.complex128 if input.dtype.kind in "cW" else xp.float64)
    near = xp.absolute(angle) < 0.1
    far = angle + near
    square = angle * angle
    series = -angle / 3 * (1 - square / 10 * (1 - square / 28 * (1 - square / 54)))
    exact = (far * xp.cos(far) - xp.sin(far)) / (far * far)
    return (math.pi * xp.where(near, series, exact)).astype(input.dtype)[()]


@sinc_slope.derivative("input", formula="−grad · (π² · sinc(x) + 2 · sinc′(x) / x), −grad · π² / 3 at 0")
def sinc_slope_input(grad: Array, input: Array, ops):
    zero = input == 0
    inner = ops.sinc(input) * -(math.pi**2) - ops.sinc_slope(input) * 2 / (input + zero)
    return grad * (inner + zero * (math.pi**2 * 2 / 3))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sinh(xp, input: Array):
    """Hyperbolic sine."""
    return xp.sinh(input)


sinh.derivative("input", formula="grad · cosh(input)")(lambda grad, input, ops: grad * ops.cosh(input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def cosh(xp, input: Array):
    """Hyperbolic cosine."""
    return xp.cosh(input)


cosh.derivative("input", formula="grad · sinh(input)")(lambda grad, input, ops: grad * ops.sinh(input))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def tanh(xp, input: Array):
    """Hyperbolic tangent."""
    return unary.tanh(input)


tanh.derivative("input", formula="grad · (1 − tanh(input)²)")(lambda grad, out, ops: ops.tanh_backward(grad, out))


@op(tangent="symmetric", complex="holomorphic")
def tanh_backward(xp, arrived: Array, result: Array):
    """arrived · (1 − result²)."""
    return unary.tanh_gradient(arrived, result)


tanh_backward.derivative("arrived", formula="grad · (1 − result²)")(
    lambda grad, result, ops: ops.tanh_backward(grad, result)
)
tanh_backward.derivative("result", formula="−2 · grad · arrived · result")(
    lambda grad, arrived, result: grad * arrived * result * -2
)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def asinh(xp, input: Array):
    """Inverse hyperbolic sine."""
    return xp.arcsinh(input)


asinh.derivative("input", formula="grad / √(input² + 1)")(lambda grad, input, ops: grad / ops.sqrt(input * input + 1))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def acosh(xp, input: Array):
    """Inverse hyperbolic cosine."""
    return xp.arccosh(input)


acosh.derivative("input", formula="grad / (√(input − 1) · √(input + 1))")(
    lambda grad, input, ops: grad / (ops.sqrt(input - 1) * ops.sqrt(input + 1))
)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def atanh(xp, input: Array):
    """Inverse hyperbolic tangent."""
    return xp.arctanh(input)


atanh.derivative("input", formula="grad / (1 − input²)")(lambda grad, input: grad / (1 - input * input))


arccos, arccosh, arcsin, arcsinh = acos, acosh, asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
