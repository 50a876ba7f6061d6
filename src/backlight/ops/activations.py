"""Activation functions."""

from backlight.errors import GraphError, ShapeError
from backlight.kernels import gelu as kernels
from backlight.ops.declare import op
from backlight.ops.dims import normalise_dim
from backlight.ops.pointwise import tanh
from backlight.ops.slicing import narrow

__all__ = ["celu", "prelu", "relu", "selu", "sigmoid", "threshold"]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@op
def relu(xp, input):
    """The input where it is positive, else 0."""
    return xp.maximum(input, input.dtype.type(0))


@relu.derivative("input", formula="grad where input > 0, else 0")
def relu_input(grad, out, ops):
    return ops.where(out > 0, grad, ops.zeros_as(grad))


@op(promote="float")
def sigmoid(xp, input):
    """1 / (1 + exp(−input))."""
    return 1 / (1 + xp.exp(-input))


@sigmoid.derivative("input", formula="grad · out · (1 − out)")
def sigmoid_input(grad, out):
    return grad * (out - out * out)


@op
def silu(xp, input):
    """input · sigmoid(input)."""
    return input / (1 + xp.exp(-input))


@silu.derivative("input", formula="grad · σ · (1 + input · (1 − σ)), σ = sigmoid(input)")
def silu_input(grad, input, ops):
    sigma = ops.sigmoid(input)
    return grad * (sigma + input * (sigma - sigma * sigma))


@op(node="GeluBackward0")
def gelu_exact(xp, input):
    """input · Φ(input)."""
    return kernels.gelu(input)


@gelu_exact.derivative("input", formula="grad · (Φ(input) + input · φ(input))")
def gelu_exact_input(grad, input, ops):
    return grad * ops.gelu_exact_slope(input)


@op
def gelu_exact_slope(xp, input):
    """Φ(input) + input · φ(input)."""
    return kernels.gelu_slope(input)


@gelu_exact_slope.derivative("input", formula="grad · φ(input) · (2 − input²)")
def gelu_exact_slope_input(grad, input, ops):
    square = input * input
    return grad * (ops.exp(square * -0.5) * (2 - square) * kernels.DENSITY)


@op(node="GeluBackward0")
def gelu_by_tanh(xp, input):
    """½ · input · (1 + tanh(√(2/π) · (input + 0.044715 · input³)))."""
    return kernels.gelu_tanh(input)


@gelu_by_tanh.derivative("input", formula="grad · slope(input)")
def gelu_by_tanh_input(grad, input, ops):
    return grad * ops.gelu_by_tanh_slope(input)


@op
def gelu_by_tanh_slope(xp, input):
    """½ · (1 + t + input · (1 − t²) · u′), t = tanh(u)."""
    return kernels.gelu_tanh_slope(input)


@gelu_by_tanh_slope.derivative("input", formula="grad · (1 − t²) · (u′ + ½ · input · (u″ − 2 · t · u′²))")
def gelu_by_tanh_slope_input(grad, input, ops):
    root, cubic = kernels.SQRT_2_OVER_PI, kernels.CUBIC
    t = ops.tanh(input * (input * input * cubic + 1) * root)
    first = (input * input * (3 * cubic) + 1) * root
    second = input * (6 * cubic * root)
    return grad * ((1 - t * t) * (first + input * 0.5 * (second - t * first * first * 2)))


def gelu(input, approximate: str = "none"):
    """Gaussian error linear unit; `approximate="tanh"` takes the form by tanh.

    Raises:
        RuntimeError: `approximate` is another word.
    """
    if approximate == "none":
        return gelu_exact(input)
    if approximate == "tanh":
        return gelu_by_tanh(input)
    raise GraphError("approximate argument must be either none or tanh.")


@op
def softplus(xp, input, beta: float = 1, threshold: float = 20):
    """log(1 + exp(beta · input)) / beta; the input itself where beta · input > threshold."""
    scaled = input * beta
    return xp.where(scaled > threshold, input, xp.log1p(xp.exp(xp.minimum(scaled, threshold))) / beta).astype(
        input.dtype
    )


@softplus.derivative("input", formula="grad · sigmoid(beta · input), grad where beta · input > threshold")
def softplus_input(grad, input, beta, threshold, ops):
    scaled = input * beta
    return ops.where(scaled > threshold, grad, grad * ops.sigmoid(scaled))


@op
def leaky_relu(xp, input, negative_slope: float = 0.01):
    """The input where it is positive, else negative_slope · input."""
    return xp.where(input > 0, input, input * input.dtype.type(negative_slope))


@leaky_relu.derivative("input", formula="grad where input > 0, else negative_slope · grad")
def leaky_relu_input(grad, input, negative_slope, ops):
    return ops.where(input > 0, grad, grad * negative_slope)


@op(name="elu", node="EluBackward0")
def elu_scaled(xp, input, alpha: float = 1.0, scale: float = 1, input_scale: float = 1):
    """scale · input where positive, else scale · alpha · (exp(input_scale · input) − 1)."""
    return xp.where(
        input > 0,
        input * input.dtype.type(scale),
        xp.expm1(xp.minimum(input, 0) * input.dtype.type(input_scale)) * input.dtype.type(alpha * scale),
    ).astype(input.dtype)


@elu_scaled.derivative("input", formula="grad · scale where positive, else grad · scale · alpha · input_scale · exp(…)")
def elu_scaled_input(grad, input, alpha, scale, input_scale, ops):
    below = grad * (ops.exp(ops.clamp_to_numbers(input, None, 0) * input_scale) * (alpha * scale * input_scale))
    return ops.where(input > 0, grad * scale, below)


def elu(input, alpha: float = 1.0):
    """The input where it is positive, else alpha · (exp(input) − 1)."""
    return elu_scaled(input, alpha)


def selu(input):
    """ELU with the constants that keep mean and variance.

    Source: G. Klambauer et al., Self-Normalizing Neural Networks, 2017, arXiv:1706.02515.
    """
    return elu_scaled(input, SELU_ALPHA, SELU_SCALE)


def celu(input, alpha: float = 1.0):
    """The input where it is positive, else alpha · (exp(input / alpha) − 1).

    Raises:
        RuntimeError: alpha is 0.
    """
    if alpha == 0:
        raise GraphError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return celu_of(input, alpha)


@op(node="CeluBackward0")
def celu_of(xp, input, alpha: float):
    """The input where it is positive, else alpha · (exp(input / alpha) − 1)."""
    return xp.where(input > 0, input, xp.expm1(xp.minimum(input, 0) / alpha) * alpha).astype(input.dtype)


@celu_of.derivative("input", formula="grad where positive, else grad · exp(input / alpha)")
def celu_of_input(grad, input, alpha, ops):
    return ops.where(input > 0, grad, grad * ops.exp(ops.clamp_to_numbers(input, None, 0) / alpha))


@op
def hardtanh(xp, input, min_val: float = -1.0, max_val: float = 1.0):
    """The input brought between min_val and max_val."""
    return xp.minimum(xp.maximum(input, input.dtype.type(min_val)), input.dtype.type(max_val))


@hardtanh.derivative("input", formula="grad where min_val < input < max_val, else 0")
def hardtanh_input(grad, input, min_val, max_val, ops):
    return ops.where((input > min_val) & (input < max_val), grad, ops.zeros_as(grad))


def relu6(input):
    """The input brought between 0 and 6."""
    return hardtanh(input, 0.0, 6.0)


@op
def hardsigmoid(xp, input):
    """input / 6 + ½, brought between 0 and 1."""
    return xp.minimum(xp.maximum(input + 3, input.dtype.type(0)), input.dtype.type(6)) / 6


@hardsigmoid.derivative("input", formula="grad / 6 where −3 < input < 3, else 0")
def hardsigmoid_input(grad, input, ops):
    return ops.where((input > -3) & (input < 3), grad / 6, ops.zeros_as(grad))


@op
def hardswish(xp, input):
    """input · hardsigmoid(input)."""
    return input * xp.minimum(xp.maximum(input + 3, input.dtype.type(0)), input.dtype.type(6)) / 6


@hardswish.derivative("input", formula="0 below −3, grad · (input / 3 + ½) up to 3, grad above")
def hardswish_input(grad, input, ops):
    inner = ops.where(input < 3, grad * (input / 3 + 0.5), grad)
    return ops.where(input <= -3, ops.zeros_as(grad), inner)


@op
def mish(xp, input):
    """input · tanh(softplus(input))."""
    return input * xp.tanh(xp.logaddexp(input, input.dtype.type(0)))


@mish.derivative("input", formula="grad · (t + input · (1 − t²) · sigmoid(input)), t = tanh(softplus(input))")
def mish_input(grad, input, ops):
    t = ops.tanh(ops.logaddexp(input, ops.zeros_as(input)))
    return grad * (t + input * (1 - t * t) * ops.sigmoid(input))


@op(node="LogSigmoidBackward0")
def logsigmoid(xp, input):
    """log(sigmoid(input)), without overflow."""
    return xp.minimum(input, input.dtype.type(0)) - xp.log1p(xp.exp(-xp.absolute(input)))


@logsigmoid.derivative("input", formula="grad · sigmoid(−input)")
def logsigmoid_input(grad, input, ops):
    return grad * ops.sigmoid(-input)


def softsign(input):
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """The input less its hyperbolic tangent."""
    return input - tanh(input)


@op
def softshrink(xp, input, lambd: float = 0.5):
    """The input moved towards 0 by lambd, 0 within lambd of it."""
    bound = input.dtype.type(lambd)
    return xp.where(input > bound, input - bound, xp.where(input < -bound, input + bound, input * 0))


@softshrink.derivative("input", formula="grad where |input| > lambd, else 0")
def softshrink_input(grad, input, lambd, ops):
    return ops.where((input > lambd) | (input < -lambd), grad, ops.zeros_as(grad))


@op
def hardshrink(xp, input, lambd: float = 0.5):
    """The input, 0 within lambd of 0."""
    return xp.where((input >= -lambd) & (input <= lambd), input.dtype.type(0), input)


@hardshrink.derivative("input", formula="grad where |input| > lambd, else 0")
def hardshrink_input(grad, input, lambd, ops):
    return ops.where((input >= -lambd) & (input <= lambd), ops.zeros_as(grad), grad)


@op
def threshold(xp, input, threshold: float, value: float):
    """The input where it is above the threshold, else `value`."""
    return xp.where(input <= threshold, input.dtype.type(value), input)


@threshold.derivative("input", formula="grad where input > threshold, else 0")
def threshold_input(grad, input, threshold, ops):
    return ops.where(input <= threshold, ops.zeros_as(grad), grad)


def glu(input, dim: int = -1):
    """The first half of the input along `dim`, times the sigmoid of the second.

    Raises:
        RuntimeError: the dim has an odd size, or there is none.
    """
    if input.ndim == 0:
        raise GraphError("glu does not support 0-dimensional tensors")
    dim = normalise_dim(dim, input.ndim)
    size = input.shape[dim]
    if size % 2:
        raise ShapeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return narrow(input, dim, 0, size // 2) * sigmoid(narrow(input, dim, size // 2, size // 2))


@op(node="PreluKernelBackward0")
def prelu_of(xp, input, weight):
    """The input where it is positive, else weight · input; the weight has been given dims that broadcast."""
    return xp.where(input > 0, input, weight * input)


@prelu_of.derivative("input", formula="grad where input > 0, else weight · grad")
def prelu_of_input(grad, input, weight, ops):
    return ops.where(input > 0, grad, weight * grad)


@prelu_of.derivative("weight", formula="Σ input · grad where input ≤ 0")
def prelu_of_weight(grad, input, weight_shape, ops):
    return ops.sum_to_size(ops.where(input > 0, ops.zeros_as(grad), input * grad), weight_shape)


def prelu(input, weight):
    """The input where it is positive, else weight · input; one weight, or one a channel (dim 1).

    Raises:
        RuntimeError: the number of weights fits neither.
    """
    if weight.numel() == 1:
        return prelu_of(input, weight.reshape((1,) * input.ndim))
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() != channels:
        raise ShapeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
            f"channel size = {channels}."
        )
    return prelu_of(input, weight.reshape((1, -1) + (1,) * (input.ndim - 2)))
