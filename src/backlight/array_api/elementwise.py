"""The standard's elementwise functions: each is an op under the standard's name.

Binary functions take a Python number for either operand.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from backlight.codegen.runtime_support import is_number
from backlight.engine.tensor_state import TensorState, wrap
from backlight.ops.elementwise.arithmetic import add, mul, sub
from backlight.ops.elementwise.comparisons import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    eq,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
    signbit,
)
from backlight.ops.elementwise.division import floor_divide, remainder, true_divide
from backlight.ops.elementwise.powers import hypot, logaddexp, pow, reciprocal, sqrt, square
from backlight.ops.elementwise.rounding import (
    abs,
    ceil,
    conj,
    copysign,
    floor,
    neg,
    nextafter,
    positive,
    round,
    sign,
    trunc,
)
from backlight.ops.elementwise.transcendental import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    exp,
    expm1,
    log,
    log1p,
    log2,
    log10,
    sin,
    sinh,
    tan,
    tanh,
)
from backlight.ops.elementwise.where_clamp import clamp, maximum, minimum
from backlight.ops.type_promotion import check_scalar, scalar_dtype

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


def _with_numbers(function: Callable) -> Callable:
    """Return a binary function that takes numbers, too."""

    @wraps(function)
    def of_two(x1, x2, /):
        return function(_as_tensor(x1), _as_tensor(x2))

    return of_two


def _as_tensor(value):
    if isinstance(value, TensorState) or not is_number(value):
        return value
    check_scalar(value)
    return wrap(np.asarray(value, scalar_dtype(value)))


add, atan2, copysign, ge, gt, hypot, le, logaddexp = map(
    _with_numbers, (add, atan2, copysign, ge, gt, hypot, le, logaddexp)
)
eq, floor_divide, lt, mul, ne, nextafter, remainder, sub, true_divide = map(
    _with_numbers, (eq, floor_divide, lt, mul, ne, nextafter, remainder, sub, true_divide)
)
bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor = map(
    _with_numbers, (bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor)
)
logical_and, logical_or, logical_xor, maximum, minimum = map(
    _with_numbers, (logical_and, logical_or, logical_xor, maximum, minimum)
)
bitwise_invert = bitwise_not
divide = true_divide
equal = eq
greater = gt
greater_equal = ge
less = lt
less_equal = le
multiply = mul
negative = neg
not_equal = ne
real = conj  # of real numbers: the number itself
subtract = sub


def clip(x, /, min=None, max=None):
    """Clamp the elements; without limits, return a copy."""
    return x.clone() if min is None and max is None else clamp(x, min, max)
