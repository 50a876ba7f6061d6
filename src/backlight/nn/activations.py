"""The activations of `torch.nn.functional`, with its `inplace` option."""

from backlight.ops import activations as ops
from backlight.ops.activations import (
    gelu,
    glu,
    hardshrink,
    logsigmoid,
    prelu,
    sigmoid,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
)
from backlight.ops.inplace import inplace as written_in
from backlight.ops.pointwise import tanh

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

celu_ = written_in(ops.celu)
elu_ = written_in(ops.elu)
hardsigmoid_ = written_in(ops.hardsigmoid)
hardswish_ = written_in(ops.hardswish)
hardtanh_ = written_in(ops.hardtanh)
leaky_relu_ = written_in(ops.leaky_relu)
mish_ = written_in(ops.mish)
relu_ = written_in(ops.relu)
relu6_ = written_in(ops.relu6, "relu6_")
selu_ = written_in(ops.selu)
silu_ = written_in(ops.silu)
threshold_ = written_in(ops.threshold)


def relu(input, inplace: bool = False):
    """The input where it is positive, else 0."""
    return relu_(input) if inplace else ops.relu(input)


def relu6(input, inplace: bool = False):
    """The input brought between 0 and 6."""
    return relu6_(input) if inplace else ops.relu6(input)


def elu(input, alpha: float = 1.0, inplace: bool = False):
    """The input where it is positive, else alpha · (exp(input) − 1)."""
    return elu_(input, alpha) if inplace else ops.elu(input, alpha)


def selu(input, inplace: bool = False):
    """ELU with the constants that keep mean and variance."""
    return selu_(input) if inplace else ops.selu(input)


def celu(input, alpha: float = 1.0, inplace: bool = False):
    """The input where it is positive, else alpha · (exp(input / alpha) − 1)."""
    return celu_(input, alpha) if inplace else ops.celu(input, alpha)


def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """The input where it is positive, else negative_slope · input."""
    return leaky_relu_(input, negative_slope) if inplace else ops.leaky_relu(input, negative_slope)


def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """The input brought between min_val and max_val."""
    return hardtanh_(input, min_val, max_val) if inplace else ops.hardtanh(input, min_val, max_val)


def hardsigmoid(input, inplace: bool = False):
    """input / 6 + ½, brought between 0 and 1."""
    return hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


def hardswish(input, inplace: bool = False):
    """input · hardsigmoid(input)."""
    return hardswish_(input) if inplace else ops.hardswish(input)


def silu(input, inplace: bool = False):
    """input · sigmoid(input)."""
    return silu_(input) if inplace else ops.silu(input)


def mish(input, inplace: bool = False):
    """input · tanh(softplus(input))."""
    return mish_(input) if inplace else ops.mish(input)


def threshold(input, threshold: float, value: float, inplace: bool = False):
    """The input where it is above the threshold, else `value`."""
    return threshold_(input, threshold, value) if inplace else ops.threshold(input, threshold, value)
