"""Activation functions."""

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import finfo
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.elementwise import unary
from backlight.kernels.elementwise.masked_choice import chosen
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.elementwise.transcendental import tanh
from backlight.ops.number_operands import no_bools, no_integers, require_no_bools
from backlight.ops.scalars import element_like

__all__ = ["celu", "hardshrink", "prelu", "relu", "selu", "sigmoid", "threshold"]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _no_bools(message: str):
    return lambda kind: ShapeError(message + "; convert the input with .long()") if kind.kind == "b" else None


@op(tangent="symmetric", zero_derivative=("out",), dtype_error=_no_bools("Boolean inputs not supported for relu"))
def relu(xp, input: Array):
    """The input where it is positive, else 0."""
    return unary.relu(input)


relu.derivative("input", formula="grad where input > 0, else 0")(lambda grad, out, ops: ops.relu_backward(grad, out))


@op(node="ThresholdBackwardBackward0", tangent="symmetric")
def relu_backward(xp, arrived: Array, result: Array):
    """What arrived where the result is above 0, else 0."""
    return unary.relu_gradient(arrived, result)


relu_backward.derivative("arrived", formula="grad where result > 0, else 0")(
    lambda grad, result, ops: ops.relu_backward(grad, result)
)


@op(promote="float", tangent="symmetric", complex="holomorphic")
def sigmoid(xp, input: Array):
    """1 / (1 + exp(−input))."""
    return unary.sigmoid(input)


sigmoid.derivative("input", formula="grad · out · (1 − out)")(lambda grad, out, ops: ops.sigmoid_backward(grad, out))


@op(tangent="symmetric", complex="holomorphic")
def sigmoid_backward(xp, arrived: Array, result: Array):
    """arrived · result · (1 − result)."""
    return unary.sigmoid_gradient(arrived, result)


sigmoid_backward.derivative("arrived", formula="grad · result · (1 − result)")(
    lambda grad, result, ops: ops.sigmoid_backward(grad, result)
)
sigmoid_backward.derivative("result", formula="grad · arrived · (1 − 2 · result)")(
    lambda grad, arrived, result: grad * arrived * (1 - result * 2)
)


@op(promote="float", dtype_error=no_integers("leaky_relu_cpu"), tangent="symmetric", zero_derivative=("input",))
def leaky_relu(xp, input: Array, negative_slope: float = 0.01):
    """The input where it is positive, else negative_slope · input."""
    return unary.leaky_relu(input, negative_slope)


leaky_relu.derivative("input", formula="grad where input > 0, else negative_slope · grad")(
    lambda grad, input, negative_slope, ops: ops.leaky_relu_backward(grad, input, negative_slope)
)


@op(tangent="symmetric")
def leaky_relu_backward(xp, arrived: Array, input: Array, negative_slope: float):
    """What arrived where the input is positive, else negative_slope times it."""
    return unary.leaky_relu_gradient(arrived, input, negative_slope)


leaky_relu_backward.derivative("arrived", formula="grad where input > 0, else negative_slope · grad")(
    lambda grad, input, negative_slope, ops: ops.leaky_relu_backward(grad, input, negative_slope)
)


@op(
    name="prelu",
    promote="float",
    node="PreluKernelBackward0",
    dtype_error=no_integers("prelu_cpu"),
    tangent="symmetric",
    zero_derivative=("input", "weight"),
)
def prelu_weighted(xp, input: Array, weight: Array):
    """The input where it is positive, else weight · input; the shapes broadcast."""
    return chosen(input > 0, input, weight * input)


prelu_weighted.derivative("input", formula="grad where input > 0, else weight · grad")(
    lambda grad, input, weight, ops: ops.where(input > 0, grad, weight * grad)
)
prelu_weighted.derivative("weight", formula="Σ input · grad where input ≤ 0")(
    lambda grad, input, ops: ops.kept(input * grad, ~(input > 0))
)


@public_function
def prelu(input: TensorState, weight: TensorState):
    """Return the input where it is positive, else weight · input.

    Shapes: input (batch, channels, …), weight () or (1,) or (channels,)

    Raises:
        RuntimeError: the number of weights is neither 1 nor that of the channels, or their dtype is not the input's.
    """
    if weight.ndim > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    channels = input.shape[1] if input.ndim > 1 else 1
    count = weight._data.size
    if count != 1 and not input.ndim:
        raise ShapeError("Not allow zero-dim input tensor. Give one slope, or an input with channels")
    if count not in (1, channels):
        raise ShapeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
            f"size = {channels}."
        )
    if weight.dtype is not input.dtype:
        names = [one.dtype.old_name for one in (input, weight)]
        raise ShapeError(f"prelu: Type promoting not supported. Got {names[0]} and {names[1]}; convert one of them")
    if weight.ndim and input.ndim != 1:
        weight = weight.reshape((1, count, *(1,) * (input.ndim - 2)) if input.ndim else ())
    return prelu_weighted(input, weight)


@op(tangent="symmetric", zero_derivative=("input",), dtype_error=_no_bools("Bool inputs not supported for hardtanh"))
def hardtanh(xp, input: Array, min_val: float = -1.0, max_val: float = 1.0):
    """The input brought between min_val and max_val."""
    return unary.hardtanh(input, min_val, max_val)


hardtanh.derivative("input", formula="grad where min_val < input < max_val, else 0")(
    lambda grad, input, min_val, max_val, ops: ops.hardtanh_backward(grad, input, min_val, max_val)
)


@op(tangent="symmetric")
def hardtanh_backward(xp, arrived: Array, input: Array, min_val: float, max_val: float):
    """What arrived where the input lies between min_val and max_val, else 0."""
    return unary.hardtanh_gradient(arrived, input, min_val, max_val)


hardtanh_backward.derivative("arrived", formula="grad where min_val < input < max_val, else 0")(
    lambda grad, input, min_val, max_val, ops: ops.hardtanh_backward(grad, input, min_val, max_val)
)


def relu6(input: TensorState):
    """Return the input brought between 0 and 6."""
    return hardtanh(input, 0, 6)


@op(promote="float", dtype_error=no_integers("hardsigmoid_cpu"), tangent="symmetric", zero_derivative=("input",))
def hardsigmoid(xp, input: Array):
    """input / 6 + ½, brought between 0 and 1."""
    return unary.hardsigmoid(input)


hardsigmoid.derivative("input", formula="grad / 6 where −3 < input < 3, else 0")(
    lambda grad, input, ops: ops.hardsigmoid_backward(grad, input)
)


@op(tangent="symmetric")
def hardsigmoid_backward(xp, arrived: Array, input: Array):
    """A sixth of what arrived where −3 < input < 3, else 0."""
    return unary.hardsigmoid_gradient(arrived, input)


hardsigmoid_backward.derivative("arrived", formula="grad / 6 where −3 < input < 3, else 0")(
    lambda grad, input, ops: ops.hardsigmoid_backward(grad, input)
)


@op(
    name="softshrink",
    promote="float",
    dtype_error=no_integers("softshrink_check"),
    tangent="symmetric",
    zero_derivative=("input",),
)
def shrunk_softly(xp, input: Array, lambd: float):
    """The input moved towards 0 by lambd, 0 within lambd of it."""
    return unary.softshrink(input, lambd)


shrunk_softly.derivative("input", formula="grad where |input| > lambd, else 0")(
    lambda grad, input, lambd, ops: ops.softshrink_backward(grad, input, lambd)
)


def _declare_shrunk(name: str):
    """Declare the gradient of one of the two that shrink; they differ by their names only."""

    @op(name=name, tangent="symmetric")
    def shrink_backward(xp, arrived: Array, input: Array, lambd: float):
        """What arrived, and 0 where the input lies within lambd of 0."""
        return unary.shrink_gradient(arrived, input, lambd)

    @shrink_backward.derivative("arrived", formula="grad where |input| > lambd, else 0")
    def shrink_backward_arrived(grad: Array, input: Array, lambd: float, ops):
        return getattr(ops, name)(grad, input, lambd)


for _name in ("softshrink_backward", "hardshrink_backward"):
    _declare_shrunk(_name)


def softshrink(input: TensorState, lambd: float = 0.5):
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


@op(promote="float", dtype_error=no_integers("hardshrink_cpu"), tangent="symmetric", zero_derivative=("input",))
def hardshrink(xp, input: Array, lambd: float = 0.5):
    """The input, 0 within lambd of 0."""
    return unary.hardshrink(input, lambd)


hardshrink.derivative("input", formula="grad where |input| > lambd, else 0")(
    lambda grad, input, lambd, ops: ops.hardshrink_backward(grad, input, lambd)
)


@op(tangent="symmetric", zero_derivative=("input",), dtype_error=no_bools("threshold_cpu"))
def threshold(xp, input: Array, threshold: float, value: float):
    """The input where it is above the threshold, else `value`."""
    return chosen(input <= threshold, element_like(input, value), input)


threshold.derivative("input", formula="grad where input > threshold, else 0")(
    lambda grad, input, threshold, ops: ops.kept(grad, ~(input <= threshold))
)


@op(name="elu", promote="float", dtype_error=no_integers("elu_cpu"), tangent="symmetric")
def elu_scaled(xp, input: Array, alpha: float, scale: float, input_scale: float):
    """scale · input where it is positive, else scale · alpha · (exp(input_scale · input) − 1)."""
    return unary.elu(input, alpha, scale, input_scale)


elu_scaled.derivative("input", formula="scale · grad where input > 0, else grad · slope of the exponential")(
    lambda grad, input, alpha, scale, input_scale, ops: ops.elu_backward(grad, input, alpha, scale, input_scale)
)


@op(tangent="symmetric")
def elu_backward(xp, arrived: Array, input: Array, alpha: float, scale: float, input_scale: float):
    """arrived · (scale where the input is positive, else alpha · scale · input_scale · exp(input_scale · input))."""
    return unary.elu_gradient(arrived, input, alpha, scale, input_scale)


elu_backward.derivative("arrived", formula="grad · slope of elu")(
    lambda grad, input, alpha, scale, input_scale, ops: ops.elu_backward(grad, input, alpha, scale, input_scale)
)


@elu_backward.derivative("input", formula="grad · arrived · input_scale · slope of elu where input < 0, else 0")
def elu_backward_input(grad: Array, arrived: Array, input: Array, alpha: float, scale: float, input_scale: float, ops):
    bent = ops.elu_backward(grad * arrived, input, alpha, scale * input_scale, input_scale)
    return ops.kept(bent, input < 0)


def elu(input: TensorState, alpha: float = 1.0):
    """Return the input where it is positive, else alpha · (exp(input) − 1)."""
    return elu_scaled(input, alpha, 1.0, 1.0)


def selu(input: TensorState):
    """Return ELU with the constants that keep mean and variance.

    Source: G. Klambauer et al., "Self-Normalizing Neural Networks", 2017, arXiv:1706.02515.
    """
    return elu_scaled(input, SELU_ALPHA, SELU_SCALE, 1.0)


@op(name="celu", promote="float", dtype_error=no_integers("elu_cpu"), tangent="symmetric")
def celu_of(xp, input: Array, alpha: float):
    """The input where it is positive, else alpha · (exp(input / alpha) − 1)."""
    x = widened(input)
    return rounded(xp.maximum(x, 0) + xp.expm1(xp.minimum(x, 0) / alpha) * alpha, input.dtype)


@celu_of.derivative("input", formula="grad where input ≥ 0, else grad · exp(input / alpha)")
def celu_of_input(grad: Array, input: Array, alpha: float, ops):
    slope = ops.exp(ops.scale(ops.clamp_max_number(input, 0), 1 / alpha))
    return ops.where(input < 0, grad * slope, grad)


def celu(input: TensorState, alpha: float = 1.0):
    """Return the input where it is positive, else alpha · (exp(input / alpha) − 1).

    Raises:
        RuntimeError: alpha is 0.
    """
    if alpha == 0:
        raise ShapeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return celu_of(input, alpha)


@op(promote="float", dtype_error=no_integers("softplus_cpu"), tangent="symmetric")
def softplus(xp, input: Array, beta: float = 1.0, threshold: float = 20.0):
    """log(1 + exp(beta · input)) / beta; the input itself where beta · input > threshold."""
    return unary.softplus(input, beta, threshold)


softplus.derivative("input", formula="grad · sigmoid(beta · input), grad where beta · input > threshold")(
    lambda grad, input, beta, threshold, ops: ops.softplus_backward(grad, input, beta, threshold)
)


@op(tangent="symmetric")
def softplus_backward(xp, arrived: Array, input: Array, beta: float, threshold: float):
    """arrived · sigmoid(beta · input); what arrived where beta · input > threshold."""
    return unary.softplus_gradient(arrived, input, beta, threshold)


softplus_backward.derivative("arrived", formula="grad · slope of softplus")(
    lambda grad, input, beta, threshold, ops: ops.softplus_backward(grad, input, beta, threshold)
)


@softplus_backward.derivative("input", formula="grad · arrived · beta · s · (1 − s), s = sigmoid(beta · input), or 0")
def softplus_backward_input(grad: Array, arrived: Array, input: Array, beta: float, threshold: float, ops):
    scaled = ops.scale(input, beta)
    opened = ops.sigmoid(scaled)
    return ops.kept(ops.scale(grad * arrived * (opened * (1 - opened)), beta), ~(scaled > threshold))


@op(promote="float", node="LogSigmoidBackward0", dtype_error=no_integers("log_sigmoid_cpu"), tangent="symmetric")
def logsigmoid(xp, input: Array):
    """log(sigmoid(input)), without overflow."""
    return unary.logsigmoid(input)


logsigmoid.derivative("input", formula="grad · sigmoid(−input)")(
    lambda grad, input, ops: ops.log_sigmoid_backward(grad, input)
)


@op(tangent="symmetric")
def log_sigmoid_backward(xp, arrived: Array, input: Array):
    """arrived · sigmoid(−input)."""
    return unary.logsigmoid_gradient(arrived, input)


log_sigmoid_backward.derivative("arrived", formula="grad · sigmoid(−input)")(
    lambda grad, input, ops: ops.log_sigmoid_backward(grad, input)
)


@log_sigmoid_backward.derivative("input", formula="−grad · arrived · s · (1 − s), s = sigmoid(input)")
def log_sigmoid_backward_input(grad: Array, arrived: Array, input: Array, ops):
    opened = ops.sigmoid(input)
    return -(grad * arrived) * (opened * (1 - opened))


def softsign(input: TensorState):
    """Return input / (1 + |input|)."""
    require_no_bools("abs_cpu", input)
    return input / (input.abs() + 1)


def tanhshrink(input: TensorState):
    """Return the input less its hyperbolic tangent."""
    return input - tanh(input)
