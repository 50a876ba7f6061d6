"""Comparisons, logic and bits: results without a gradient."""

from backlight.errors import ArgumentError
from backlight.graph.state import TensorState
from backlight.ops.declare import op
from backlight.ops.promotion import BOOL, category

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


@op(promote="same", symbol="==")
def eq(xp, input, other):
    """Tell where two tensors are equal."""
    return input == other


@op(promote="same", symbol="!=")
def ne(xp, input, other):
    """Tell where two tensors differ."""
    return input != other


@op(promote="same", symbol="<")
def lt(xp, input, other):
    """Tell where `input` is less than `other`."""
    return input < other


@op(promote="same", symbol="<=")
def le(xp, input, other):
    """Tell where `input` is at most `other`."""
    return input <= other


@op(promote="same", symbol=">")
def gt(xp, input, other):
    """Tell where `input` is greater than `other`."""
    return input > other


@op(promote="same", symbol=">=")
def ge(xp, input, other):
    """Tell where `input` is at least `other`."""
    return input >= other


greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne


@op(promote="same")
def logical_and(xp, input, other):
    """Tell where both are nonzero."""
    return xp.logical_and(input, other)


@op(promote="same")
def logical_or(xp, input, other):
    """Tell where one or both are nonzero."""
    return xp.logical_or(input, other)


@op(promote="same")
def logical_xor(xp, input, other):
    """Tell where exactly one is nonzero."""
    return xp.logical_xor(input, other)


@op
def logical_not(xp, input):
    """Tell where the input is zero."""
    return xp.logical_not(input)


@op(promote="same", symbol="&")
def bitwise_and(xp, input, other):
    """Combine bits by and; booleans by logic."""
    return xp.bitwise_and(input, other)


@op(promote="same", symbol="|")
def bitwise_or(xp, input, other):
    """Combine bits by or; booleans by logic."""
    return xp.bitwise_or(input, other)


@op(promote="same", symbol="^")
def bitwise_xor(xp, input, other):
    """Combine bits by exclusive or; booleans by logic."""
    return xp.bitwise_xor(input, other)


@op(promote="same", symbol="<<")
def bitwise_left_shift(xp, input, other):
    """Shift bits to the left."""
    return xp.left_shift(input, other)


@op(promote="same", symbol=">>")
def bitwise_right_shift(xp, input, other):
    """Shift bits to the right."""
    return xp.right_shift(input, other)


@op
def bitwise_not(xp, input):
    """Flip every bit; for booleans, logical not."""
    return xp.invert(input)


@op
def isnan(xp, input):
    """Tell where the input is not a number."""
    return input != input


@op
def isinf(xp, input):
    """Tell where the input is infinite."""
    return xp.isinf(input)


@op
def isfinite(xp, input):
    """Tell where the input is neither infinite nor NaN."""
    return xp.isfinite(input)


@op
def isposinf(xp, input):
    """Tell where the input is positive infinity."""
    return input == xp.inf


@op
def isneginf(xp, input):
    """Tell where the input is negative infinity."""
    return input == -xp.inf


@op
def isreal(xp, input):
    """Tell where the input is a real number: everywhere."""
    return xp.ones(input.shape, BOOL)


@op
def signbit(xp, input):
    """Tell where the sign bit is set, as it is in −0.0."""
    return xp.signbit(input)


@op(promote="same")
def isclose(xp, input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
    """Tell where |input − other| ≤ atol + rtol · |other|."""
    close = (input == other) | (
        xp.isfinite(input) & xp.isfinite(other) & (abs(input - other) <= atol + abs(rtol * other))
        if category(input.dtype) == 2
        else abs(input.astype("float64") - other) <= atol + abs(rtol * other)
    )
    return close | ((input != input) & (other != other)) if equal_nan else close


def allclose(input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Tell whether `isclose` holds for all elements."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._data.all())


def equal(input, other) -> bool:
    """Tell whether two tensors have the same shape and the same elements."""
    for place, value in enumerate((input, other)):
        if not isinstance(value, TensorState):
            name = ("input", "other")[place]
            raise ArgumentError(
                f"equal(): argument '{name}' (position {place + 1}) must be Tensor, not {type(value).__name__}"
            )
    return input._data.shape == other._data.shape and bool((input._data == other._data).all())


def equals(self, other):
    """The operator ==: False for None, as in PyTorch; element by element for tensors and numbers."""
    return False if other is None else eq(self, other)


def differs(self, other):
    """The operator !=: True for None, as in PyTorch; element by element for tensors and numbers."""
    return True if other is None else ne(self, other)
