"""Activation functions."""

from backlight.dtypes import finfo
from backlight.errors import ShapeError
from backlight.kernels import gates
from backlight.kernels.choice import chosen
from backlight.kernels.halves import rounded, widened
from backlight.ops.declare import op
from backlight.ops.dims import normalise_dim
from backlight.ops.numbers import like, no_integers
from backlight.ops.pointwise import tanh
from backlight.ops.special import erf

__all__ = ["celu", "hardshrink", "prelu", "relu", "selu", "sigmoid", "threshold"]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@op
def relu(xp, input):
    """The input where it is positive, else 0."""
    return xp.maximum(input, input.dtype.type(0))


@relu.derivative("input", formula="grad where input > 0, else 0")
def relu_input(grad, out, ops):
    return ops.kept(grad, ~(out <= 0))


@op(promote="float")
def sigmoid(xp, input):
    """1 / (1 + exp(−input))."""
    return 1 / (1 + xp.exp(-input)) if input.dtype.itemsize > 2 else _half_sigmoid(xp, input)


def _half_sigmoid(xp, input):
    return rounded(1 / (1 + xp.exp(-widened(input))), input.dtype)


@sigmoid.derivative("input", formula="grad · out · (1 − out)")
def sigmoid_input(grad, out):
    return grad * ((1 - out) * out)


# --- gates: x · gate(x) ----------------------------------------------------------------------------------------------


@op(name="gelu", promote="float", keeps=("gate",), refuse=no_integers("GeluKernelImpl"))
def gelu_of(xp, input, approximate: str):
    """input · Φ(input), or its approximation by tanh."""
    return gates.gelu(input) if approximate == "none" else gates.gelu_tanh(input)


@gelu_of.derivative("input", formula="grad · (Φ(input) + input · φ(input)), or that of the approximation")
def gelu_of_input(xp, grad, input, approximate, gate):
    gradient = gates.gelu_gradient if approximate == "none" else gates.gelu_tanh_gradient
    return gradient(grad, input, gate)


@gelu_of.composed
def gelu_of_ops(input, approximate):
    if approximate == "none":
        return input * (erf(input * gates.SQRT_HALF) + 1) * 0.5
    bent = input * (input * input * gates.TANH_CUBE + 1) * gates.TANH_SLOPE
    return input * (tanh(bent) + 1) * 0.5


def gelu(input, approximate: str = "none"):
    """Return x · Φ(x), Φ the distribution function of the standard normal; "tanh" approximates it.

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".

    Source: D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016, arXiv:1606.08415.
    """
    if approximate not in ("none", "tanh"):
        raise ShapeError("approximate argument must be either none or tanh.")
    return gelu_of(input, approximate)


@op(promote="float", keeps=("gate",), refuse=no_integers("silu_cpu"))
def silu(xp, input):
    """input · sigmoid(input)."""
    return gates.silu(input)


@silu.derivative("input", formula="grad · s · (1 + input · (1 − s)), s = sigmoid(input)")
def silu_input(xp, grad, input, gate):
    return gates.silu_gradient(grad, input, gate)


@silu.composed
def silu_of_ops(input):
    return input * sigmoid(input)


@op(promote="float", refuse=no_integers("mish_cpu"))
def mish(xp, input):
    """input · tanh(softplus(input))."""
    x = widened(input)
    return rounded(x * xp.tanh(xp.log1p(xp.exp(x))), input.dtype)


@mish.derivative("input", formula="grad · (t + input · (1 − t²) · sigmoid(input)), t = tanh(softplus(input))")
def mish_input(grad, input, ops):
    t = ops.tanh(ops.log1p(ops.exp(input)))
    return grad * (t + input * ops.sigmoid(input) * (1 - t * t))


@op(promote="float", refuse=no_integers("hardswish_cpu"))
def hardswish(xp, input):
    """input · hardsigmoid(input)."""
    x = widened(input)
    return rounded(x * xp.clip(x + 3, 0, 6) / 6, input.dtype)


@hardswish.derivative("input", formula="grad · (input / 3 + ½) within ±3, else grad above and 0 below")
def hardswish_input(grad, input, ops):
    return ops.kept(ops.where(input < 3, grad * (input / 3 + 0.5), grad), ~(input <= -3))


# --- lines with kinks ------------------------------------------------------------------------------------------------


@op(promote="float", refuse=no_integers("leaky_relu_cpu"))
def leaky_relu(xp, input, negative_slope: float = 0.01):
    """The input where it is positive, else negative_slope · input."""
    sloped = input * like(input, negative_slope)
    return xp.maximum(input, sloped) if 0 < negative_slope <= 1 else chosen(input > 0, input, sloped)


@leaky_relu.derivative("input", formula="grad where input > 0, else negative_slope · grad")
def leaky_relu_input(grad, input, negative_slope, ops):
    return ops.where(input > 0, grad, ops.scale(grad, negative_slope))


@op(name="prelu", promote="float", node="PreluKernelBackward0", refuse=no_integers("prelu_cpu"))
def prelu_weighted(xp, input, weight):
    """The input where it is positive, else weight · input; the shapes broadcast."""
    return chosen(input > 0, input, weight * input)


@prelu_weighted.derivative("input", formula="grad where input > 0, else weight · grad")
def prelu_weighted_input(grad, input, weight, ops):
    return ops.where(input > 0, grad, weight * grad)


@prelu_weighted.derivative("weight", formula="Σ input · grad where input ≤ 0")
def prelu_weighted_weight(grad, input, ops):
    return ops.kept(input * grad, ~(input > 0))


def prelu(input, weight):
    """Return the input where it is positive, else weight · input.

    Shapes: input (batch, channels, …), weight () or (1,) or (channels,)

    Raises:
        RuntimeError: the number of weights is neither 1 nor that of the channels.
    """
    if weight.ndim > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    channels = input.shape[1] if input.ndim > 1 else 1
    count = weight._data.size
    if count not in (1, channels):
        raise ShapeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
            f"size = {channels}."
        )
    if weight.ndim and input.ndim != 1:
        weight = weight.reshape((1, count, *(1,) * (input.ndim - 2)) if input.ndim else ())
    return prelu_weighted(input, weight)


@op
def hardtanh(xp, input, min_val: float = -1.0, max_val: float = 1.0):
    """The input brought between min_val and max_val."""
    return xp.minimum(xp.maximum(input, like(input, min_val)), like(input, max_val))


@hardtanh.derivative("input", formula="grad where min_val < input < max_val, else 0")
def hardtanh_input(grad, input, min_val, max_val, ops):
    return ops.kept(grad, ~((input <= min_val) | (input >= max_val)))


def relu6(input):
    """Return the input brought between 0 and 6."""
    return hardtanh(input, 0, 6)


@op(promote="float", refuse=no_integers("hardsigmoid_cpu"))
def hardsigmoid(xp, input):
    """input / 6 + ½, brought between 0 and 1."""
    return rounded(xp.clip(widened(input) + 3, 0, 6) / 6, input.dtype)


@hardsigmoid.derivative("input", formula="grad / 6 where −3 < input < 3, else 0")
def hardsigmoid_input(grad, input, ops):
    return ops.kept(grad / 6, (input > -3) & (input < 3))


@op(name="softshrink", promote="float", refuse=no_integers("softshrink_cpu"))
def shrunk_softly(xp, input, lambd: float):
    """The input moved towards 0 by lambd, 0 within lambd of it."""
    return input - xp.minimum(xp.maximum(input, like(input, -lambd)), like(input, lambd))


@shrunk_softly.derivative("input", formula="grad where |input| > lambd, else 0")
def shrunk_softly_input(grad, input, lambd, ops):
    return ops.kept(grad, ~((input >= -lambd) & (input <= lambd)))


def softshrink(input, lambd: float = 0.5):
    """Return the input moved towards 0 by lambd, and 0 within lambd of it.

    Raises:
        RuntimeError: lambd is negative.
    """
    if lambd < 0:
        raise ShapeError(
            f"lambda must be in range [0, {finfo(input.dtype).max:g}] for input dtype "
            f"{input.dtype.old_name}, but found {lambd}"
        )
    return shrunk_softly(input, lambd)


@op(promote="float", refuse=no_integers("hardshrink_cpu"))
def hardshrink(xp, input, lambd: float = 0.5):
    """The input, 0 within lambd of 0."""
    return chosen((input >= -lambd) & (input <= lambd), like(input, 0), input)


@hardshrink.derivative("input", formula="grad where |input| > lambd, else 0")
def hardshrink_input(grad, input, lambd, ops):
    return ops.kept(grad, ~((input >= -lambd) & (input <= lambd)))


@op
def threshold(xp, input, threshold: float, value: float):
    """The input where it is above the threshold, else `value`."""
    return chosen(input <= threshold, like(input, value), input)


@threshold.derivative("input", formula="grad where input > threshold, else 0")
def threshold_input(grad, input, threshold, ops):
    return ops.kept(grad, ~(input <= threshold))


# --- exponentials ----------------------------------------------------------------------------------------------------


@op(name="elu", promote="float", refuse=no_integers("elu_cpu"))
def elu_scaled(xp, input, alpha: float, scale: float, input_scale: float):
    """scale · input where it is positive, else scale · alpha · (exp(input_scale · input) − 1)."""
    x = widened(input)
    below = xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale)
    return rounded(xp.maximum(x, 0) * scale + below, input.dtype)


@elu_scaled.derivative("input", formula="scale · grad where input > 0, else grad · slope of the exponential")
def elu_scaled_input(grad, input, alpha, scale, input_scale, ops):
    slope = ops.scale(ops.exp(ops.scale(ops.clamp_max_number(input, 0), input_scale)), alpha * scale * input_scale)
    return ops.where(input <= 0, grad * slope, ops.scale(grad, scale))


def elu(input, alpha: float = 1.0):
    """Return the input where it is positive, else alpha · (exp(input) − 1)."""
    return elu_scaled(input, alpha, 1.0, 1.0)


def selu(input):
    """Return ELU with the constants that keep mean and variance.

    Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017, arXiv:1706.02515.
    """
    return elu_scaled(input, SELU_ALPHA, SELU_SCALE, 1.0)


@op(name="celu", promote="float", refuse=no_integers("elu_cpu"))
def celu_of(xp, input, alpha: float):
    """The input where it is positive, else alpha · (exp(input / alpha) − 1)."""
    x = widened(input)
    return rounded(xp.maximum(x, 0) + xp.expm1(xp.minimum(x, 0) / alpha) * alpha, input.dtype)


@celu_of.derivative("input", formula="grad where input > 0, else grad · exp(input / alpha)")
def celu_of_input(grad, input, alpha, ops):
    slope = ops.exp(ops.scale(ops.clamp_max_number(input, 0), 1 / alpha))
    return ops.where(input <= 0, grad * slope, grad)


def celu(input, alpha: float = 1.0):
    """Return the input where it is positive, else alpha · (exp(input / alpha) − 1).

    Raises:
        RuntimeError: alpha is 0.
    """
    if alpha == 0:
        raise ShapeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return celu_of(input, alpha)


@op(promote="float", refuse=no_integers("softplus_cpu"))
def softplus(xp, input, beta: float = 1.0, threshold: float = 20.0):
    """log(1 + exp(beta · input)) / beta; the input itself where beta · input > threshold."""
    x = widened(input)
    scaled = x * beta
    bent = xp.log1p(xp.exp(xp.minimum(scaled, threshold))) / beta
    return rounded(chosen(scaled > threshold, x, bent), input.dtype)


@softplus.derivative("input", formula="grad · sigmoid(beta · input), grad where beta · input > threshold")
def softplus_input(grad, input, beta, threshold, ops):
    scaled = ops.scale(input, beta)
    return ops.where(scaled > threshold, grad, grad * ops.sigmoid(scaled))


@op(promote="float", node="LogSigmoidBackward0", refuse=no_integers("log_sigmoid_cpu"))
def logsigmoid(xp, input):
    """log(sigmoid(input)), without overflow."""
    x = widened(input)
    return rounded(xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.absolute(x))), input.dtype)


@logsigmoid.derivative("input", formula="grad · sigmoid(−input)")
def logsigmoid_input(grad, input, ops):
    return grad * ops.sigmoid(-input)


# --- made of others --------------------------------------------------------------------------------------------------


def softsign(input):
    """Return input / (1 + |input|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """Return the input less its hyperbolic tangent."""
    return input - tanh(input)


@op(name="glu", promote="float")
def gated(xp, input, dim: int):
    """The first half of the input along `dim`, times the sigmoid of the second."""
    first, second = xp.split(widened(input), 2, dim)
    return rounded(first / (1 + xp.exp(-second)), input.dtype)


@gated.derivative("input", formula="(grad · s, grad · first · s · (1 − s)), s = sigmoid(second)")
def gated_input(grad, input, dim, ops):
    size = input.shape[dim] // 2
    first, second = ops.slice(input, dim, 0, size), ops.slice(input, dim, size, 2 * size)
    opened = ops.sigmoid(second)
    return ops.cat((grad * opened, grad * first * (opened * (1 - opened))), dim)


def glu(input, dim: int = -1):
    """Return the first half of the input along `dim`, times the sigmoid of the second.

    Raises:
        RuntimeError: the dim has an odd size, or the tensor has none.
    """
    if input.ndim == 0:
        raise ShapeError("glu does not support scalars because halving size must be even")
    dim = normalise_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise ShapeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}; cut it with narrow"
        )
    return gated(input, dim)
