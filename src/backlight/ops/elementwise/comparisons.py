"""Comparisons, logic and bits: results without a gradient."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.elementwise.complex_parts import imaginary_parts
from backlight.ops.number_operands import no_bools, no_floats, require_kernel
from backlight.ops.type_promotion import BOOL, category

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
]


@op(promote="same", symbol="==", complex="own")
def eq(xp, input: Array, other: Array):
    """Tell where two tensors are equal."""
    return input == other


@op(promote="same", symbol="!=", complex="own")
def ne(xp, input: Array, other: Array):
    """Tell where two tensors differ."""
    return input != other


@op(promote="same", symbol="<")
def lt(xp, input: Array, other: Array):
    """Tell where `input` is less than `other`."""
    return input < other


@op(promote="same", symbol="<=")
def le(xp, input: Array, other: Array):
    """Tell where `input` is at most `other`."""
    return input <= other


@op(promote="same", symbol=">")
def gt(xp, input: Array, other: Array):
    """Tell where `input` is greater than `other`."""
    return input > other


@op(promote="same", symbol=">=")
def ge(xp, input: Array, other: Array):
    """Tell where `input` is at least `other`."""
    return input >= other


greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne


@op(promote="same", complex="own")
def logical_and(xp, input: Array, other: Array):
    """Tell where both are nonzero."""
    return xp.logical_and(input, other)


@op(promote="same", complex="own")
def logical_or(xp, input: Array, other: Array):
    """Tell where one or both are nonzero."""
    return xp.logical_or(input, other)


@op(promote="same", complex="own")
def logical_xor(xp, input: Array, other: Array):
    """Tell where exactly one is nonzero."""
    return xp.logical_xor(input, other)


@op(complex="own")
def logical_not(xp, input: Array):
    """Tell where the input is zero."""
    return xp.logical_not(input)


@op(promote="same", symbol="&", dtype_error=no_floats("bitwise_and_cpu"))
def bitwise_and(xp, input: Array, other: Array):
    """Combine bits by and; booleans by logic."""
    return xp.bitwise_and(input, other)


@op(promote="same", symbol="|", dtype_error=no_floats("bitwise_or_cpu"))
def bitwise_or(xp, input: Array, other: Array):
    """Combine bits by or; booleans by logic."""
    return xp.bitwise_or(input, other)


@op(promote="same", symbol="^", dtype_error=no_floats("bitwise_xor_cpu"))
def bitwise_xor(xp, input: Array, other: Array):
    """Combine bits by exclusive or; booleans by logic."""
    return xp.bitwise_xor(input, other)


def _integers_only(kernel: str):
    """Return a value for an op's `dtype_error`: PyTorch's error for floats and bools, in the name of its kernel."""
    floats, bools = no_floats(kernel), no_bools(kernel)
    return lambda *kinds: floats(*kinds) or bools(*kinds)


@op(promote="same", symbol="<<", dtype_error=_integers_only("lshift_cpu"))
def bitwise_left_shift(xp, input: Array, other: Array):
    """Shift bits to the left."""
    return xp.left_shift(input, other)


@op(promote="same", symbol=">>", dtype_error=_integers_only("rshift_cpu"))
def bitwise_right_shift(xp, input: Array, other: Array):
    """Shift bits to the right."""
    return xp.right_shift(input, other)


@op(dtype_error=no_floats("bitwise_not_cpu"))
def bitwise_not(xp, input: Array):
    """Flip every bit; for booleans, logical not."""
    return xp.invert(input)


def invert(self):
    """The operator ~."""
    if category(self._data.dtype) >= 2:
        raise ArgumentError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


@op(complex="own")
def isnan(xp, input: Array):
    """Tell where the input is not a number."""
    return input != input


@op(complex="own")
def isinf(xp, input: Array):
    """Tell where the input is infinite."""
    return xp.isinf(input)


@op(complex="own")
def isfinite(xp, input: Array):
    """Tell where the input is neither infinite nor NaN."""
    return xp.isfinite(input)


@op
def isposinf(xp, input: Array):
    """Tell where the input is positive infinity."""
    return input == xp.inf


@op
def isneginf(xp, input: Array):
    """Tell where the input is negative infinity."""
    return input == -xp.inf


@op(complex="own")
def isreal(xp, input: Array):
    """Tell where the input is a real number: of complex numbers, where the imaginary part is 0."""
    return imaginary_parts(input) == 0 if input.dtype.kind in "cW" else xp.ones(input.shape, BOOL)


@op
def signbit(xp, input: Array):
    """Tell where the sign bit is set, as it is in −0.0."""
    return xp.signbit(input)


def _refuse_different(first: np.dtype, second: np.dtype) -> str | None:
    if first != second:
        names = [from_numpy_dtype(kind).old_name for kind in (first, second)]
        return f"{names[0]} did not match {names[1]}; convert one with .to(…)"
    return None


@op(name="isclose", promote="same", dtype_error=_refuse_different, complex="own")
def close(xp, input: Array, other: Array, rtol: float, atol: float, equal_nan: bool):
    """Tell where |input − other| ≤ atol + rtol · |other|, or both are the same."""
    found = input == other
    if category(input.dtype) >= 2:
        distance = xp.absolute(input - other)
        found = found | (xp.isfinite(distance) & (distance <= atol + xp.absolute(rtol * other)))
    elif rtol or atol:
        distance = xp.absolute(input.astype(xp.float64) - other)
        found = found | (distance <= atol + xp.absolute(rtol * other))
    return found | ((input != input) & (other != other)) if equal_nan else found


def isclose(input: TensorState, other: TensorState, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
    """Tell where |input − other| ≤ atol + rtol · |other|; with `equal_nan`, NaN is close to NaN.

    Raises:
        RuntimeError: a tolerance is negative, or the dtypes differ.
    """
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise ShapeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    return close(input, other, rtol, atol, equal_nan)


def allclose(
    input: TensorState, other: TensorState, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Tell whether `isclose` holds for all elements."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._data.all())


def equal(input: TensorState, other: TensorState) -> bool:
    """Tell whether two tensors have the same shape and the same elements."""
    for place, (name, value) in enumerate((("input", input), ("other", other)), start=1):
        if not isinstance(value, TensorState):
            raise ArgumentError(
                f"equal(): argument '{name}' (position {place}) must be Tensor, not {type(value).__name__}"
            )
    if input._data.dtype.kind == "W":
        require_kernel("equal_notnan_cpu" if input is other else "equal_cpu", input._data.dtype)
    return input._data.shape == other._data.shape and bool((input._data == other._data).all())
