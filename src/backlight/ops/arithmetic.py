"""Sums, products, quotients, remainders, with broadcasting."""

from backlight.errors import GraphError
from backlight.ops.declare import op

__all__ = [
    "add",
    "addcdiv",
    "addcmul",
    "arctan2",
    "atan2",
    "copysign",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "hypot",
    "lerp",
    "logaddexp",
    "logaddexp2",
    "mul",
    "multiply",
    "remainder",
    "rsub",
    "sub",
    "subtract",
    "true_divide",
]

LN2 = 0.6931471805599453


@op(promote="same", symbol="+")
def add(xp, input, other, *, alpha: float = 1):
    """Add `other`, scaled by `alpha`, to `input`."""
    return input + other if alpha == 1 else input + other * alpha


@add.derivative("input", formula="grad")
def add_input(grad):
    return grad


@add.derivative("other", formula="alpha · grad")
def add_other(grad, alpha):
    return grad if alpha == 1 else grad * alpha


@op(promote="same", symbol="-")
def sub(xp, input, other, *, alpha: float = 1):
    """Subtract `other`, scaled by `alpha`, from `input`."""
    return input - other if alpha == 1 else input - other * alpha


@sub.derivative("input", formula="grad")
def sub_input(grad):
    return grad


@sub.derivative("other", formula="−alpha · grad")
def sub_other(grad, alpha):
    return -grad if alpha == 1 else grad * -alpha


subtract = sub


@op(promote="same", node="RsubBackward1", symbol="-")
def rsub(xp, input, other, *, alpha: float = 1):
    """Subtract `input`, scaled by `alpha`, from `other`."""
    return other - input if alpha == 1 else other - input * alpha


@rsub.derivative("input", formula="−alpha · grad")
def rsub_input(grad, alpha):
    return -grad if alpha == 1 else grad * -alpha


@rsub.derivative("other", formula="grad")
def rsub_other(grad):
    return grad


@op(promote="same", symbol="*")
def mul(xp, input, other):
    """Multiply element by element."""
    return input * other


@mul.derivative("input", formula="grad · other")
def mul_input(grad, other):
    return grad * other


@mul.derivative("other", formula="grad · input")
def mul_other(grad, input):
    return grad * input


multiply = mul


@op(promote="float", symbol="/", node="DivBackward0")
def true_divide(xp, input, other):
    """Divide element by element."""
    return input / other


@true_divide.derivative("input", formula="grad / other")
def true_divide_input(grad, other):
    return grad / other


@true_divide.derivative("other", formula="−grad · input / other²")
def true_divide_other(grad, input, other):
    return -grad * ((input / other) / other)


@op(promote="same", node="DivBackward1")
def div_floor(xp, input, other):
    """Divide and round down."""
    return floored(xp, input, other)


@div_floor.derivative("input", formula="0")
def div_floor_input(grad):
    return grad * 0


@div_floor.derivative("other", formula="0")
def div_floor_other(grad):
    return grad * 0


@op(promote="same", node="DivBackward1")
def div_trunc(xp, input, other):
    """Divide and round towards zero."""
    if input.dtype.kind in "iu":
        quotient = floored(xp, input, other)
        return quotient + ((quotient < 0) & (quotient * other != input)).astype(quotient.dtype)
    return xp.trunc(input / other)


@div_trunc.derivative("input", formula="0")
def div_trunc_input(grad):
    return grad * 0


@div_trunc.derivative("other", formula="0")
def div_trunc_other(grad):
    return grad * 0


def floored(xp, input, other):
    """Divide and round down; floats divided by zero give an infinity as in PyTorch, integers an error.

    Raises:
        RuntimeError: integers are divided by zero.
    """
    if input.dtype.kind in "iu":
        if not xp.all(other):
            raise GraphError("ZeroDivisionError: integer division by zero; divide floats, or mask the zeros")
        return input // other
    return xp.where(other == 0, input / other, xp.floor_divide(input, other)).astype(input.dtype)


def div(input, other, *, rounding_mode: str | None = None):
    """Divide; `rounding_mode` "trunc" rounds towards zero, "floor" down.

    Raises:
        RuntimeError: the rounding mode is another.
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return div_floor(input, other)
    if rounding_mode == "trunc":
        return div_trunc(input, other)
    raise GraphError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'; leave it out "
        "for the exact quotient"
    )


divide = div


@op(promote="same", symbol="//")
def floor_divide(xp, input, other):
    """Divide and round down."""
    return floored(xp, input, other)


@op(promote="same", symbol="%")
def remainder(xp, input, other):
    """What is left of the division, with the sign of `other`."""
    return xp.remainder(input, other)


@remainder.derivative("input", formula="grad")
def remainder_input(grad):
    return grad


@remainder.derivative("other", formula="−grad · ⌊input / other⌋")
def remainder_other(grad, input, other, ops):
    return -grad * ops.div_floor(input, other)


@op(promote="same")
def fmod(xp, input, other):
    """What is left of the division, with the sign of `input`."""
    return xp.fmod(input, other)


@fmod.derivative("input", formula="grad")
def fmod_input(grad):
    return grad


@fmod.derivative("other", formula="−grad · trunc(input / other)")
def fmod_other(grad, input, other, ops):
    return -grad * ops.div_trunc(input, other)


@op(promote="same")
def addcmul(xp, input, tensor1, tensor2, *, value: float = 1):
    """input + value · tensor1 · tensor2."""
    return input + tensor1 * tensor2 * (value if value == 1 else input.dtype.type(value))


@addcmul.derivative("input", formula="grad")
def addcmul_input(grad):
    return grad


@addcmul.derivative("tensor1", formula="value · grad · tensor2")
def addcmul_tensor1(grad, tensor2, value):
    return grad * tensor2 * value


@addcmul.derivative("tensor2", formula="value · grad · tensor1")
def addcmul_tensor2(grad, tensor1, value):
    return grad * tensor1 * value


@op(promote="same")
def addcdiv(xp, input, tensor1, tensor2, *, value: float = 1):
    """input + value · tensor1 / tensor2."""
    return input + tensor1 / tensor2 * (value if value == 1 else input.dtype.type(value))


@addcdiv.derivative("input", formula="grad")
def addcdiv_input(grad):
    return grad


@addcdiv.derivative("tensor1", formula="value · grad / tensor2")
def addcdiv_tensor1(grad, tensor2, value):
    return grad / tensor2 * value


@addcdiv.derivative("tensor2", formula="−value · grad · tensor1 / tensor2²")
def addcdiv_tensor2(grad, tensor1, tensor2, value):
    return -grad * value * (tensor1 / tensor2 / tensor2)


@op(promote="same")
def lerp(xp, input, end, weight):
    """input + weight · (end − input)."""
    return input + weight * (end - input)


@lerp.derivative("input", formula="grad · (1 − weight)")
def lerp_input(grad, weight):
    return grad * (1 - weight)


@lerp.derivative("end", formula="grad · weight")
def lerp_end(grad, weight):
    return grad * weight


@lerp.derivative("weight", formula="grad · (end − input)")
def lerp_weight(grad, input, end):
    return grad * (end - input)


@op(promote="float")
def hypot(xp, input, other):
    """√(input² + other²)."""
    return xp.hypot(input, other)


@hypot.derivative("input", formula="grad · input / out")
def hypot_input(grad, input, out):
    return grad * (input / out)


@hypot.derivative("other", formula="grad · other / out")
def hypot_other(grad, other, out):
    return grad * (other / out)


@op(promote="float")
def atan2(xp, input, other):
    """The angle of the point (other, input)."""
    return xp.arctan2(input, other)


@atan2.derivative("input", formula="grad · other / (input² + other²)")
def atan2_input(grad, input, other):
    return grad * (other / (input * input + other * other))


@atan2.derivative("other", formula="−grad · input / (input² + other²)")
def atan2_other(grad, input, other):
    return -grad * (input / (input * input + other * other))


arctan2 = atan2


@op(promote="float")
def logaddexp(xp, input, other):
    """log(exp(input) + exp(other)), without overflow."""
    return xp.logaddexp(input, other)


@logaddexp.derivative("input", formula="grad · exp(input − out)")
def logaddexp_input(grad, input, other, ops):
    return grad / (1 + ops.exp(other - input))


@logaddexp.derivative("other", formula="grad · exp(other − out)")
def logaddexp_other(grad, input, other, ops):
    return grad / (1 + ops.exp(input - other))


@op(promote="float")
def logaddexp2(xp, input, other):
    """log₂(2^input + 2^other), without overflow."""
    return xp.logaddexp2(input, other)


@logaddexp2.derivative("input", formula="grad · 2^(input − out)")
def logaddexp2_input(grad, input, other, ops):
    return grad / (1 + ops.exp2(other - input))


@logaddexp2.derivative("other", formula="grad · 2^(other − out)")
def logaddexp2_other(grad, input, other, ops):
    return grad / (1 + ops.exp2(input - other))


@op(promote="float")
def copysign(xp, input, other):
    """The size of `input` with the sign of `other`."""
    return xp.copysign(input, other)


@copysign.derivative("input", formula="grad · sign(input) · sign of other, 0 at 0")
def copysign_input(grad, input, other, ops):
    return grad * (ops.sgn(input) * ops.copysign(ops.ones_as(grad), other))


@copysign.derivative("other", formula="0")
def copysign_other(grad):
    return grad * 0
