"""Functions of one array, element by element."""

from backlight.ops.declare import op

__all__ = ["tanh", "exp"]


@op(promote="float")
def tanh(xp, input):
    """Hyperbolic tangent."""
    return xp.tanh(input)


@tanh.derivative("input", formula="grad · (1 − tanh(input)²)")
def tanh_input(grad, out):
    return grad - grad * (out * out)


@op(promote="float")
def exp(xp, input):
    """Exponential function."""
    return xp.exp(input)


@exp.derivative("input", formula="grad · exp(input)")
def exp_input(grad, out):
    return grad * out
