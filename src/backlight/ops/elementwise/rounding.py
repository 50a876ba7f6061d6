"""Signs, sizes, and numbers made whole."""

import ml_dtypes
import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.number_operands import like, no_bools, no_integers, require_floats, require_no_bools
from backlight.ops.type_promotion import category, holds_complex

__all__ = [
    "abs",
    "absolute",
    "angle",
    "ceil",
    "copysign",
    "fix",
    "floor",
    "frac",
    "frexp",
    "heaviside",
    "nan_to_num",
    "neg",
    "negative",
    "nextafter",
    "positive",
    "round",
    "sgn",
    "sign",
    "trunc",
]

FLOATS = "fV"  # NumPy's kinds of floats: its own, and bfloat16


def _refuse_bool(kind: np.dtype) -> str | None:
    if kind.kind == "b":
        return (
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return None


@op(dtype_error=_refuse_bool, tangent="symmetric", complex="linear")
def neg(xp, input: Array):
    """Change the sign."""
    return -input


neg.derivative("input", formula="−grad")(lambda grad: -grad)


negative = neg


def positive(input: TensorState):
    """Return the input itself.

    Raises:
        RuntimeError: it is a tensor of bools.
    """
    if input._data.dtype.kind == "b":
        raise ShapeError("The `+` operator, on a bool tensor is not supported.")
    return input


@op(tangent="symmetric", complex="own", dtype_error=no_bools("abs_cpu"))
def abs(xp, input: Array):
    """Absolute value."""
    return xp.absolute(input)


abs.derivative("input", formula="grad · sgn(input)")(lambda grad, input, ops: grad * ops.sgn(input))


absolute = abs


def _sign(xp, input: Array):
    """Return −1, 0 or 1; 0 for NaN, as in PyTorch."""
    return input.copy() if input.dtype.kind == "b" else xp.subtract(input > 0, input < 0, dtype=input.dtype)


@op(tangent="symmetric")
def sign(xp, input: Array):
    """−1, 0 or 1, by the sign of the input."""
    return _sign(xp, input)


sign.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


@op(tangent="symmetric", complex="own")
def sgn(xp, input: Array):
    """The same as `sign`; of complex numbers z / |z|, 0 for 0."""
    if input.dtype.kind in "cW":
        values = widened(input)
        size = xp.absolute(values)
        found = xp.where(size == 0, values.dtype.type(0), values / xp.where(size == 0, size.dtype.type(1), size))[()]
        return rounded(found, input.dtype)
    return _sign(xp, input)


@sgn.derivative("input", formula="0; of complex numbers (grad − Re(out̄ · grad) · out) / |input|, 0 for 0")
def sgn_input(grad, input, out, ops):
    if not holds_complex(grad):
        return ops.new_zeros(grad, grad.shape)
    size = ops.abs(input)
    change = grad - ops.real(ops.conj_physical(out) * grad) * out
    return ops.kept(change / (size + (size == 0)), size != 0)


@op(promote="float", tangent="symmetric", complex="own")
def angle(xp, input: Array):
    """0 for numbers ≥ 0, π for those below; of complex numbers their angle; NaN stays NaN."""
    if input.dtype.kind in "cW":
        return xp.angle(input)
    return xp.where(input != input, input, (input < 0) * like(input, np.pi))[()]


@angle.derivative("input", formula="0; of complex numbers i · grad · input / |input|², 0 for 0")
def angle_input(grad, input, ops):
    if not holds_complex(input):
        return ops.new_zeros(grad, grad.shape)
    size = ops.abs(input)
    return input * ops.divide_or_zero(ops.divide_or_zero(grad, size), size) * 1j


def _copy_of_integers(kernel: str, array: Array):
    require_no_bools(kernel, array)
    return array.copy()


@op(tangent="symmetric")
def floor(xp, input: Array):
    """The largest whole number that is not above the input."""
    return xp.floor(input) if input.dtype.kind in FLOATS else _copy_of_integers("floor_vml_cpu", input)


floor.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


@op(tangent="symmetric")
def ceil(xp, input: Array):
    """The smallest whole number that is not below the input."""
    return xp.ceil(input) if input.dtype.kind in FLOATS else _copy_of_integers("ceil_vml_cpu", input)


ceil.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


@op(tangent="symmetric")
def trunc(xp, input: Array):
    """The input without its fraction."""
    return xp.trunc(input) if input.dtype.kind in FLOATS else _copy_of_integers("trunc_vml_cpu", input)


trunc.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


fix = trunc


@op(promote="float", dtype_error=no_integers("frac_cpu"), tangent="symmetric")
def frac(xp, input: Array):
    """The fraction of the input, with its sign."""
    return input - xp.trunc(input)


frac.derivative("input", formula="grad")(lambda grad: grad)


@op(name="round", tangent="symmetric")
def round_whole(xp, input: Array):
    """The nearest whole number; of two, the even one."""
    return xp.rint(input) if input.dtype.kind in FLOATS else _copy_of_integers("round_vml_cpu", input)


round_whole.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


@op(promote="float", node="RoundBackward1", dtype_error=no_integers("round_cpu"), tangent="symmetric")
def round_decimals(xp, input: Array, decimals: int):
    """The nearest number of so many decimals; a negative count rounds to tens, hundreds …"""
    x = widened(input)
    power = x.dtype.type(10.0 ** np.absolute(decimals))  # in the dtype of the numbers, as PyTorch rounds the product
    return rounded(xp.rint(x * power) / power if decimals > 0 else xp.rint(x / power) * power, input.dtype)


round_decimals.derivative("input", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


def round(input: TensorState, *, decimals: int | None = None):
    """Return the nearest whole number (of two, the even one), or the nearest number of so many decimals."""
    if decimals is None:
        return round_whole(input)
    if decimals == 0:
        require_floats("round_vml_cpu", input)
        return round_whole(input)
    return round_decimals(input, decimals)


@op(name="copysign", promote="float", tangent="symmetric")
def copysign_tensor(xp, input: Array, other: Array):
    """The size of `input` with the sign of `other`."""
    return xp.copysign(input, other)


copysign_tensor.derivative("input", formula="grad · out / input, 0 at 0")(
    lambda grad, input, out, ops: grad * ops.kept(out / input, input != 0)
)
copysign_tensor.derivative("other", formula="0")(lambda grad, ops: ops.new_zeros(grad, grad.shape))


@op(promote="float", node="CopysignBackward1", tangent="symmetric", layout="reordered")
def copysign_number(xp, input: Array, other: float):
    """The size of `input` with the sign of a number."""
    return xp.copysign(input, like(input, other))


copysign_number.derivative("input", formula="grad · out / input, 0 at 0")(
    lambda grad, input, out, ops: grad * ops.kept(out / input, input != 0)
)


def copysign(input: TensorState, other: TensorState | float):
    """Return the size of `input` with the sign of `other`, a tensor or a number."""
    if isinstance(other, TensorState):
        return copysign_tensor(input, other)
    return copysign_number(input, other)


def _refuse_different(first: np.dtype, second: np.dtype) -> str | None:
    if first != second:
        return "heaviside is not yet implemented for tensors with different dtypes."
    return None


@op(promote="same", node="NotImplemented", dtype_error=_refuse_different, tangent="symmetric")
def heaviside(xp, input: Array, values: Array):
    """0 below 0 and for NaN, `values` at 0, 1 above."""
    return xp.where(input == 0, values, (input > 0).astype(input.dtype))[()]


@heaviside.derivative("input", "values", formula="none: PyTorch refuses it too")
def heaviside_inputs(grad: Array):
    raise GraphError("derivative for aten::heaviside is not implemented; detach its arguments, its slope is 0")


@op(promote="float", dtype_error=no_integers("nextafter_cpu"), tangent="symmetric")
def nextafter(xp, input: Array, other: Array):
    """The next number after `input` in the direction of `other`."""
    return xp.nextafter(input, other)


nextafter.derivative("input", formula="grad where input ≠ other")(
    lambda grad, input, other, ops: ops.kept(grad, input != other)
)
nextafter.derivative("other", formula="0: it only tells the direction")(
    lambda grad, other_shape, ops: ops.new_zeros(grad, other_shape)
)


@op(name="nan_to_num", tangent="symmetric", complex="own")
def finite(xp, input: Array, nan: float, posinf: float | None, neginf: float | None):
    """The input with NaN and the infinities replaced."""
    if category(input.dtype) < 2:
        return input.copy()
    if input.dtype.kind in "cW":
        out = input.copy()
        out.real = _finite_parts(xp, input.real, nan, posinf, neginf)
        out.imag = _finite_parts(xp, input.imag, nan, posinf, neginf)
        return out
    return _finite_parts(xp, input, nan, posinf, neginf)


def _finite_parts(xp, input: Array, nan: float, posinf: float | None, neginf: float | None):
    limits = ml_dtypes.finfo(input.dtype)
    out = xp.where(input == xp.inf, like(input, limits.max if posinf is None else posinf), input)
    out = xp.where(out == -xp.inf, like(input, limits.min if neginf is None else neginf), out)
    return xp.where(out != out, like(input, nan), out)[()]


finite.derivative("input", formula="grad where input is finite, else 0")(
    lambda grad, input, ops: ops.kept(grad, ops.isfinite(input))
)


def nan_to_num(input: TensorState, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None):
    """Replace NaN and the infinities, by default by 0 and the dtype's largest and smallest number."""
    nan, posinf, neginf = [float(one) if one.__class__ is int else one for one in (nan, posinf, neginf)]
    return finite(input, 0.0 if nan is None else nan, posinf, neginf)


@op(outputs=2, differentiable=(0,), residuals=("exponent",), returns=return_types.frexp)
def frexp(xp, input: Array):
    """Mantissa and exponent: input = mantissa · 2^exponent, with ½ ≤ |mantissa| < 1."""
    if input.dtype.kind not in FLOATS:
        raise ShapeError("torch.frexp() only supports floating-point dtypes; convert the input with .float()")
    mantissa, exponent = xp.frexp(input)
    return (mantissa, exponent.astype(xp.int32)), exponent.astype(input.dtype)


frexp.derivative("input", formula="grad / 2^exponent")(lambda grad, exponent, ops: grad * ops.exp2(-exponent))
