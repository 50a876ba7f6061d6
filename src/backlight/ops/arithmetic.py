"""Sums, products, quotients and powers, with broadcasting."""

from backlight.ops.declare import op

__all__ = ["add", "sub", "mul", "true_divide", "neg"]


@op(promote="same", symbol="+")
def add(xp, input, other, *, alpha: float = 1):
    """Add `other`, scaled by `alpha`, to `input`."""
    return input + other if alpha == 1 else input + alpha * other


@add.derivative("input", formula="grad")
def add_input(grad):
    return grad


@add.derivative("other", formula="alpha · grad")
def add_other(grad, alpha):
    return grad if alpha == 1 else grad * alpha


@op(promote="same", symbol="-")
def sub(xp, input, other, *, alpha: float = 1):
    """Subtract `other`, scaled by `alpha`, from `input`."""
    return input - other if alpha == 1 else input - alpha * other


@sub.derivative("input", formula="grad")
def sub_input(grad):
    return grad


@sub.derivative("other", formula="−alpha · grad")
def sub_other(grad, alpha):
    return -grad if alpha == 1 else grad * -alpha


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


@op(promote="float", symbol="/", node="DivBackward0")
def true_divide(xp, input, other):
    """Divide element by element."""
    return input / other


@true_divide.derivative("input", formula="grad / other")
def true_divide_input(grad, other):
    return grad / other


@true_divide.derivative("other", formula="−grad · input / other²")
def true_divide_other(grad, input, other):
    return -grad * (input / other) / other


@op
def neg(xp, input):
    """Change the sign."""
    return -input


@neg.derivative("input", formula="−grad")
def neg_input(grad):
    return -grad
