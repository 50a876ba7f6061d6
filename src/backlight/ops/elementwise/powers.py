"""Powers and roots, sizes of pairs, sums of exponentials."""

import math

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import is_number
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError, UnsupportedError
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.elementwise.copying import cast
from backlight.ops.number_operands import like, no_integers, promoted_with
from backlight.ops.scalars import element_like
from backlight.ops.type_promotion import COMPLEX128, FLOAT64, category, holds_complex

__all__ = ["float_power", "hypot", "ldexp", "logaddexp", "logaddexp2", "pow", "reciprocal", "rsqrt", "sqrt", "square"]

LN2 = math.log(2)


@op(node="PowBackward0", tangent="symmetric", complex="holomorphic")
def pow_number(xp, input: Array, exponent: float):
    """The input to the power of a number."""
    if exponent == 2:
        return input * input
    if category(input.dtype) < 2:
        if exponent < 0:
            raise ShapeError(
                "Integers to negative integer powers are not allowed. Convert the base with .float() first"
            )
        if input.dtype.kind == "b":
            return input.copy() if exponent else xp.ones_like(input)
        return xp.power(input, element_like(input, exponent))
    if input.dtype.itemsize == 2:
        element_like(input, exponent)  # raises where the dtype cannot hold it
    return rounded(_float_to_number(xp, widened(input), exponent), input.dtype)


def _float_to_number(xp, x: Array, exponent: float):
    """Raise floats to a number: roots, inverses and the third power as PyTorch takes them, without `power`."""
    if exponent == 3:
        return x * x * x
    if exponent == 0.5:
        return xp.sqrt(x)
    if exponent == -1:
        return 1 / x
    if exponent == -2:
        return 1 / (x * x)
    return xp.power(x, like(x, exponent))


@pow_number.derivative("input", formula="exponent · grad · input^(exponent − 1), 0 for exponent 0")
def pow_number_input(grad: Array, input: Array, exponent: float, ops):
    if exponent == 2:
        return grad * (input + input)
    if exponent == 0:
        return ops.new_zeros(grad, grad.shape)
    return ops.scale(grad * ops.pow_number(input, exponent - 1), exponent)


def _power(xp, base: Array, exponent: Array):
    """Raise arrays of one dtype; a negative power of a whole number is 0, unless the number is 1 or −1."""
    if category(base.dtype) >= 2:
        return xp.power(base, exponent)
    if base.dtype.kind == "b":
        raise UnsupportedError("\"pow\" not implemented for 'Bool'; convert the base with .long()")
    out = xp.power(base, xp.absolute(exponent))
    return xp.where((exponent < 0) & (xp.absolute(base) != 1), like(base, 0), out)[()]


@op(name="pow", promote="same", node="PowBackward1", symbol="** or pow()", tangent="symmetric", complex="holomorphic")
def pow_tensor(xp, input: Array, exponent: Array):
    """The input to the power of a tensor."""
    return _power(xp, input, exponent)


def has_power_of_zero(exponent: Array, ops):
    """Tell where 0 to the power of `exponent` has the derivative 0: for real exponents ≥ 0."""
    if holds_complex(exponent):
        return (ops.imag(exponent) == 0) & (ops.real(exponent) >= 0)
    return exponent >= 0


pow_tensor.derivative("input", formula="grad · exponent · input^(exponent − 1), 0 for exponent 0")(
    lambda grad, input, exponent, ops: ops.kept(grad * (exponent * ops.pow(input, exponent - 1)), exponent != 0)
)
pow_tensor.derivative("exponent", formula="grad · input^exponent · ln input, 0 for input 0 and exponent ≥ 0")(
    lambda grad, input, exponent, out, ops: ops.kept(
        grad * (out * ops.log(input)), (input != 0) | ~has_power_of_zero(exponent, ops)
    )
)


@op(node="PowBackward2", promote="same", tangent="symmetric", complex="holomorphic", layout="rows")
def pow_of_number(xp, exponent: Array, base: Array):
    """A number, which is no part of the graph, to the power of a tensor."""
    return _power(xp, base, exponent)


pow_of_number.derivative("exponent", formula="grad · base^exponent · ln base, 0 for base 0 and exponent ≥ 0")(
    lambda grad, base, exponent, out, ops: ops.kept(
        grad * (out * ops.log(base)), (base != 0) | ~has_power_of_zero(exponent, ops)
    )
)


def pow(input: TensorState, exponent: TensorState | float):
    """Raise `input` to the power of `exponent`; one of them may be a number.

    Raises:
        RuntimeError: integers are raised to negative integers.
    """
    if isinstance(input, TensorState):
        if isinstance(exponent, TensorState) or not is_number(exponent):
            return pow_tensor(input, exponent)
        return pow_number(promoted_with(input, exponent), exponent)
    if isinstance(exponent, TensorState) and is_number(input):
        return pow_of_number(exponent, input)
    raise ArgumentError(
        f"pow() received an invalid combination of arguments - got ({type(input).__name__}, "
        f"{type(exponent).__name__}); one of the two must be a tensor"
    )


def float_power(input: TensorState | float, exponent: TensorState | float):
    """Raise to a power in float64, or in complex128 where one of the two is complex."""
    return pow(*[_wide(value) for value in (input, exponent)])


def _wide(value: TensorState | float):
    """Return a tensor or a number in double precision."""
    if isinstance(value, TensorState):
        return cast(value, COMPLEX128 if holds_complex(value) else FLOAT64)
    if not is_number(value):
        return value
    return complex(value) if isinstance(value, (complex, np.complexfloating)) else float(value)


def square(input: TensorState):
    """Return the input times itself."""
    return pow_number(promoted_with(input, 2), 2)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def reciprocal(xp, input: Array):
    """One divided by the input."""
    return xp.reciprocal(input)


reciprocal.derivative("input", formula="−grad / input²")(lambda grad, out: -grad * (out * out))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sqrt(xp, input: Array):
    """Square root."""
    return xp.sqrt(input)


sqrt.derivative("input", formula="grad / (2 · √input)")(lambda grad, out: grad / (out + out))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def rsqrt(xp, input: Array):
    """One divided by the square root."""
    return 1 / xp.sqrt(input)


rsqrt.derivative("input", formula="−½ · grad · input^(−3/2)")(lambda grad, out: grad * (out * out * out) * -0.5)


@op(promote="float", tangent="symmetric", dtype_error=no_integers("hypot_cpu"))
def hypot(xp, input: Array, other: Array):
    """√(input² + other²), without overflow."""
    return xp.hypot(input, other)


hypot.derivative("input", formula="grad · input / out")(lambda grad, input, out: grad * (input / out))
hypot.derivative("other", formula="grad · other / out")(lambda grad, other, out: grad * (other / out))


@op(promote="float", tangent="symmetric", complex="holomorphic")
def ldexp(xp, input: Array, other: Array):
    """input · 2^other."""
    return input * xp.exp2(other)


ldexp.derivative("input", formula="grad · 2^other")(lambda grad, other, ops: grad * ops.exp2(other))
ldexp.derivative("other", formula="grad · input · 2^other · ln 2")(lambda grad, out: grad * out * LN2)


@op(promote="float", tangent="symmetric", dtype_error=no_integers("logaddexp_cpu"), complex="holomorphic")
def logaddexp(xp, input: Array, other: Array):
    """log(exp(input) + exp(other)), without overflow."""
    if input.dtype.kind not in "cW":
        return xp.logaddexp(input, other)
    larger = input.real >= other.real
    most = xp.where(larger, input, other)
    return (most + xp.log1p(xp.exp(xp.where(larger, other, input) - most)))[()]


logaddexp.derivative("input", formula="grad / (1 + exp(other − input))")(
    lambda grad, input, other, ops: grad / (1 + ops.exp(other - input))
)
logaddexp.derivative("other", formula="grad / (1 + exp(input − other))")(
    lambda grad, input, other, ops: grad / (1 + ops.exp(input - other))
)


@op(promote="float", tangent="symmetric", dtype_error=no_integers("logaddexp2_cpu"))
def logaddexp2(xp, input: Array, other: Array):
    """log₂(2^input + 2^other), without overflow."""
    return xp.logaddexp2(input, other)


logaddexp2.derivative("input", formula="grad / (1 + 2^(other − input))")(
    lambda grad, input, other, ops: grad / (1 + ops.exp2(other - input))
)
logaddexp2.derivative("other", formula="grad / (1 + 2^(input − other))")(
    lambda grad, input, other, ops: grad / (1 + ops.exp2(input - other))
)
