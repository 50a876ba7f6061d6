"""Activations as torch.nn.functional has them: with an option to write into their input."""

from backlight.errors import ValueProblem
from backlight.ops.elementwise import activations as ops
from backlight.ops.elementwise import gated_activations
from backlight.ops.inplace import inplace as written_into
from backlight.tensor.tensor import Tensor
from backlight.torch_api import aten_signatures
from backlight.torch_api.aten_signatures import rrelu_

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "mish",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "silu",
    "threshold",
    "threshold_",
]

celu_ = written_into(ops.celu)
elu_ = written_into(ops.elu)
hardsigmoid_ = written_into(ops.hardsigmoid)
hardswish_ = written_into(gated_activations.hardswish)
hardtanh_ = written_into(ops.hardtanh)
leaky_relu_ = written_into(ops.leaky_relu)
mish_ = written_into(gated_activations.mish)
relu_ = written_into(ops.relu)
relu6_ = written_into(ops.relu6)
selu_ = written_into(ops.selu)
silu_ = written_into(gated_activations.silu)
threshold_ = written_into(ops.threshold)


def relu(input: Tensor, inplace: bool = False):
    """Return max(0, x)."""
    return relu_(input) if inplace else ops.relu(input)


def relu6(input: Tensor, inplace: bool = False):
    """Return min(max(0, x), 6)."""
    return relu6_(input) if inplace else ops.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False):
    """Return x above 0 and negative_slope · x below."""
    return (leaky_relu_ if inplace else ops.leaky_relu)(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False):
    """Return x above 0 and alpha · (exp(x) − 1) below."""
    return (elu_ if inplace else ops.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False):
    """Return the scaled elu that keeps mean 0 and variance 1."""
    return selu_(input) if inplace else ops.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False):
    """Return x above 0 and alpha · (exp(x / alpha) − 1) below."""
    return (celu_ if inplace else ops.celu)(input, alpha)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """Return x, no smaller than min_val and no larger than max_val."""
    if min_val > max_val:
        raise ValueProblem(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return (hardtanh_ if inplace else ops.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False):
    """Return (x + 3) / 6, no smaller than 0 and no larger than 1."""
    return hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False):
    """Return x · hardsigmoid(x)."""
    return hardswish_(input) if inplace else gated_activations.hardswish(input)


def silu(input: Tensor, inplace: bool = False):
    """Return x · sigmoid(x)."""
    return silu_(input) if inplace else gated_activations.silu(input)


def mish(input: Tensor, inplace: bool = False):
    """Return x · tanh(softplus(x))."""
    return mish_(input) if inplace else gated_activations.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False):
    """Return x where it is above the threshold, and `value` elsewhere."""
    return (threshold_ if inplace else ops.threshold)(input, threshold, value)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False):
    """Return x above 0 and slope · x below; the slope is random while training, (lower + upper) / 2 else.

    Raises:
        RuntimeError: the lower bound is above the upper one.
    """
    return (rrelu_ if inplace else aten_signatures.rrelu)(input, lower, upper, training)
