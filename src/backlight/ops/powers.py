"""Powers of numbers and tensors."""

import numpy as np

from backlight.errors import GraphError
from backlight.graph.state import TensorState
from backlight.ops.declare import op
from backlight.ops.promotion import category, common_dtype

__all__ = ["float_power", "ldexp", "pow"]


@op(node="PowBackward0")
def pow_number(xp, input, exponent: float):
    """The input to the power of a number."""
    if exponent == 2:
        return input * input
    if exponent == 0.5 and input.dtype.kind == "f":
        return xp.sqrt(input)
    return xp.power(input, input.dtype.type(exponent))


@pow_number.derivative("input", formula="grad · exponent · input^(exponent − 1), 0 for exponent 0")
def pow_number_input(grad, input, exponent, ops):
    if exponent == 0:
        return grad * 0
    return grad * (input * 2) if exponent == 2 else grad * (ops.pow_number(input, exponent - 1) * exponent)


@op(promote="same", node="PowBackward1", symbol="** or pow()")
def pow_tensor(xp, input, exponent):
    """The input to the power of a tensor."""
    if input.dtype.kind in "iu":
        refuse_negative(exponent)
    return xp.power(input, exponent)


@pow_tensor.derivative("input", formula="grad · exponent · input^(exponent − 1), 0 for exponent 0")
def pow_tensor_input(grad, input, exponent, ops):
    slope = exponent * ops.pow_tensor(input, exponent - ops.ones_as(exponent))
    return grad * ops.where(exponent == 0, ops.zeros_as(slope), slope)


@pow_tensor.derivative("exponent", formula="grad · input^exponent · ln input, 0 for input 0 and exponent ≥ 0")
def pow_tensor_exponent(grad, input, exponent, out, ops):
    flat = (input == 0) & (exponent >= 0)
    slope = out * ops.log(ops.where(flat, ops.ones_as(input), input))
    return grad * ops.where(flat, ops.zeros_as(slope), slope)


def refuse_negative(exponent) -> None:
    """Raise if integers are to be raised to negative powers."""
    if np.any(np.less(exponent, 0)):
        raise GraphError("Integers to negative integer powers are not allowed. Convert the base with .float() first")


def pow(input, exponent):
    """Raise `input` to the power of `exponent`; either may be a number.

    Raises:
        RuntimeError: integers are raised to negative integers.
    """
    if isinstance(exponent, TensorState) or not isinstance(input, TensorState):
        return pow_tensor(input, exponent)
    kind = input._data.dtype
    if kind.kind in "iub":
        wanted = common_dtype([input._data], [exponent])
        if category(wanted) < 2:
            refuse_negative(exponent)
        input = input if wanted == kind else input.to(wanted)
    return pow_number(input, exponent)


def power_operator(self, exponent):
    """The operator **."""
    if isinstance(exponent, (int, float)) and self._data.dtype.kind == "f":
        return pow_number(self, exponent)
    if isinstance(exponent, (TensorState, int, float, np.generic, np.ndarray)):
        return pow(self, exponent.item() if isinstance(exponent, np.generic) else exponent)
    return NotImplemented


def float_power(input, exponent):
    """Raise to a power in float64."""
    wide = np.dtype(np.float64)
    input = input.to(wide) if isinstance(input, TensorState) else float(input)
    return pow(input, exponent.to(wide) if isinstance(exponent, TensorState) else float(exponent))


def ldexp(input, other):
    """input · 2^other."""
    return input * pow_tensor(2.0, other)
