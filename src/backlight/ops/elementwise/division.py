"""Quotients, remainders and divisors, with broadcasting."""

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ShapeError
from backlight.kernels.elementwise.binary import over, times
from backlight.ops.number_operands import like, no_bools, only_integers, promoted_with, require_no_bools
from backlight.ops.type_promotion import category

__all__ = ["div", "divide", "floor_divide", "fmod", "gcd", "lcm", "remainder", "true_divide"]


@op(promote="float", symbol="/", node="DivBackward0", tangent="symmetric", complex="holomorphic")
def true_divide(xp, input: Array, other: Array):
    """Divide element by element."""
    return over(input, other)


true_divide.derivative("input", formula="grad / other")(lambda grad, other: over(grad, other))
true_divide.derivative("other", formula="−grad · input / other²")(
    lambda grad, input, other: times(-grad, over(over(input, other), other))
)


def _refuse_zeros(xp, other: Array) -> None:
    if other.dtype.kind in "iu" and not xp.all(other):
        raise ShapeError("ZeroDivisionError: integers cannot be divided by zero; divide floats, or replace the zeros")


def _floored(xp, input: Array, other: Array):
    require_no_bools("div_floor_cpu", input)
    _refuse_zeros(xp, other)
    return xp.floor_divide(input, other)


def _truncated(xp, input: Array, other: Array):
    require_no_bools("div_trunc_cpu", input)
    _refuse_zeros(xp, other)
    if category(input.dtype) == 2:
        return xp.trunc(input / other)
    return (input - xp.fmod(input, other)) // other


@op(promote="same", node="DivBackward2", tangent="symmetric")
def div_rounded(xp, input: Array, other: Array, *, rounding_mode: str):
    """Divide and round: "floor" down, "trunc" towards zero."""
    return _floored(xp, input, other) if rounding_mode == "floor" else _truncated(xp, input, other)


div_rounded.derivative("input", "other", formula="0")(
    lambda grad, needs, ops: tuple(ops.new_zeros(grad, grad.shape) if needed else None for needed in needs)
)


def div(input: TensorState, other: TensorState, *, rounding_mode: str | None = None):
    """Divide; `rounding_mode` "trunc" rounds towards zero, "floor" down.

    Raises:
        RuntimeError: the rounding mode is another, or integers are divided by zero and rounded.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise ShapeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return div_rounded(input, other, rounding_mode=rounding_mode)


divide = div


@op(promote="same", symbol="//", node="NotImplemented", tangent="symmetric")
def floor_divide(xp, input: Array, other: Array):
    """Divide and round down."""
    return _floored(xp, input, other)


@floor_divide.derivative("input", "other", formula="none: PyTorch refuses it, and div(rounding_mode='floor') has 0")
def floor_divide_inputs(grad: Array):
    raise GraphError(
        "derivative for aten::floor_divide is not implemented; div(…, rounding_mode='floor') has one, which is 0"
    )


@op(
    name="remainder",
    promote="same",
    symbol="%",
    node="RemainderBackward1",
    tangent="symmetric",
    dtype_error=no_bools("remainder_cpu"),
)
def remainder_tensor(xp, input: Array, other: Array):
    """What is left of a division rounded down: it has the sign of `other`."""
    _refuse_zeros(xp, other)
    return xp.remainder(input, other)


remainder_tensor.derivative("input", formula="grad")(lambda grad: grad)
remainder_tensor.derivative("other", formula="−grad · ⌊input / other⌋")(
    lambda grad, input, other, ops: -grad * ops.div_rounded(input, other, rounding_mode="floor")
)


@op(node="RemainderBackward0", tangent="symmetric", dtype_error=no_bools("remainder_cpu"), layout="reordered")
def remainder_number(xp, input: Array, other: float):
    """What is left of a division by a number."""
    divisor = like(input, other)
    _refuse_zeros(xp, divisor)
    return xp.remainder(input, divisor)


remainder_number.derivative("input", formula="grad")(lambda grad: grad)


def remainder(input: TensorState | float, other: TensorState | float):
    """Return the remainder of a division rounded down: it has the sign of `other`.

    Raises:
        RuntimeError: integers are divided by zero.
    """
    if isinstance(other, TensorState) or not isinstance(input, TensorState):
        return remainder_tensor(input, other)
    return remainder_number(promoted_with(input, other), other)


@op(name="fmod", promote="same", node="FmodBackward1", tangent="symmetric", dtype_error=no_bools("fmod_cpu"))
def fmod_tensor(xp, input: Array, other: Array):
    """What is left of a division rounded towards zero: it has the sign of `input`."""
    _refuse_zeros(xp, other)
    return xp.fmod(input, other)


fmod_tensor.derivative("input", formula="grad")(lambda grad: grad)
fmod_tensor.derivative("other", formula="−grad · trunc(input / other)")(
    lambda grad, input, other, ops: -grad * ops.div_rounded(input, other, rounding_mode="trunc")
)


@op(node="FmodBackward0", tangent="symmetric", dtype_error=no_bools("fmod_cpu"), layout="reordered")
def fmod_number(xp, input: Array, other: float):
    """What is left of a division by a number, rounded towards zero."""
    divisor = like(input, other)
    _refuse_zeros(xp, divisor)
    return xp.fmod(input, divisor)


fmod_number.derivative("input", formula="grad")(lambda grad: grad)


def fmod(input: TensorState, other: TensorState | float):
    """Return the remainder of a division rounded towards zero: it has the sign of `input`.

    Raises:
        RuntimeError: integers are divided by zero.
    """
    if isinstance(other, TensorState):
        return fmod_tensor(input, other)
    return fmod_number(promoted_with(input, other), other)


@op(promote="same", dtype_error=only_integers("gcd_cpu"))
def gcd(xp, input: Array, other: Array):
    """The greatest common divisor."""
    return xp.gcd(input, other)


@op(promote="same", dtype_error=only_integers("lcm_cpu"))
def lcm(xp, input: Array, other: Array):
    """The least common multiple."""
    return xp.lcm(input, other)
