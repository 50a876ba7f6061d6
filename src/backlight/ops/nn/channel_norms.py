"""Layers that normalise channels: batch norm, instance norm, group norm."""

import math
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import LAYOUTS, row_major
from backlight.kernels.nn import channels
from backlight.ops.nn.normalization import check_parameter_dtypes
from backlight.ops.nn.softmax import check_float
from backlight.ops.number_operands import no_integers
from backlight.sizes import Size

__all__ = ["group_norm"]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Normalise each group of channels of each example, then scale and shift each channel.

    Shapes: input (batch, channels, …), weight and bias (channels,) -> as input

    Raises:
        RuntimeError: the channels cannot be divided into `num_groups` groups, or weight or bias have another size.
    """
    return native_group_norm(input, weight, bias, int(num_groups), float(eps))


@op(
    name="group_norm",
    node="NativeGroupNormBackward0",
    residuals=("mean", "inverse"),
    zero_derivative={"weight": ("weight",)},
    dtype_error=no_integers("GroupNormKernelImpl"),
    layout="suggested",
)
def native_group_norm(xp, input: Array, weight: Array | None, bias: Array | None, num_groups: int, eps: float):
    """(x − mean) / √(variance + eps) within a group of channels, · weight + bias of the channel."""
    check_groups(input, weight, bias, num_groups)
    x, scale, shift = np.ascontiguousarray(widened(input)), widened(weight), widened(bias)
    out, mean, inverse, _ = channels.channels_normalised(x, scale, shift, num_groups, eps)
    return rounded(out, input.dtype), mean, inverse


@native_group_norm.derivative(
    "input",
    "weight",
    "bias",
    formula="with g = grad · weight: (g − mean(g) − n · mean(g · n)) / √(variance + eps); Σ grad · n; Σ grad",
)
def native_group_norm_all(
    grad: Array, input: Array, weight: Array | None, mean: Array, inverse: Array, needs: tuple[bool, ...], xp
):
    return _gradients(grad, input, weight, mean, inverse, False, needs)


def _gradients(
    grad: Array, input: Array, weight: Array | None, mean: Array, inverse: Array, fixed: bool, needs: Sequence[bool]
):
    """Return the gradients of input, weight and bias that are needed, in the dtype of grad."""
    wide, x = np.ascontiguousarray(widened(grad)), np.ascontiguousarray(widened(input))
    found = channels.channels_gradients(wide, x, mean, inverse, widened(weight), fixed, needs)
    found = [None if array is None else rounded(array, grad.dtype) for array in found]
    if found[0] is not None and not row_major(input):
        found[0] = LAYOUTS["suggested"](found[0], input)
    return tuple(found)


@native_group_norm.decomposition
def native_group_norm_decomposition(
    input: TensorState, weight: TensorState | None, bias: TensorState | None, num_groups: int, eps: float
):
    batch = input.shape[0]
    groups = input.reshape((batch, num_groups, math.prod(input.shape[1:]) // num_groups))
    centred = groups - groups.mean(2, keepdim=True)
    normal = centred * ((centred * centred).mean(2, keepdim=True) + eps).rsqrt()
    return _scaled_and_shifted(normal.reshape(input.shape), weight, bias)


def _scaled_and_shifted(normal: TensorState, weight: TensorState | None, bias: TensorState | None):
    """Multiply each channel with its weight and add its bias: tensors."""
    shape = (1, -1) + (1,) * (normal.ndim - 2)
    normal = normal if weight is None else normal * weight.reshape(shape)
    return normal if bias is None else normal + bias.reshape(shape)


def check_groups(input: Array, weight: Array | None, bias: Array | None, num_groups: int) -> None:
    """Raise PyTorch's error unless the channels fall into groups, and weight and bias have one number for each."""
    if input.ndim < 2:
        raise ShapeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if num_groups <= 0:
        raise ShapeError(f"Expected num groups to be greater than 0, got {num_groups}")
    shape, channels = list(input.shape), input.shape[1]
    if channels % num_groups:
        raise ShapeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {shape} and "
            f"num_groups={num_groups}"
        )
    for name, array in (("weight", weight), ("bias", bias)):
        if array is not None and array.shape != (channels,):
            raise ShapeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(array.shape)} and input of shape {shape}"
            )
    check_parameter_dtypes(input, (weight, bias))


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, cudnn_enabled=True
):
    """Normalise each channel over batch and space, then scale and shift it.

    In training mean and variance are the batch's own, and the running ones move towards them by `momentum`. Else the
    running ones are used.

    Shapes: input (batch, channels, …), all others (channels,) -> as input

    Raises:
        RuntimeError: one of the vectors has not one number a channel, or running statistics are missing.
    """
    if not input._data.size:
        out = input.clone() if weight is None else input * weight.narrow(0, 0, 1)
        return out if bias is None else out + bias.narrow(0, 0, 1)
    return batch_norm_with_statistics(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


@composite_function
def batch_norm_with_statistics(input, running_mean, running_var, weight, bias, training, momentum, eps):
    """Return what `batch_norm` does, and the means and variances that it used; move the running ones."""
    check_channels(input, running_mean, running_var, weight, bias, training)
    statistics = (None, None) if training else (running_mean, running_var)
    out, mean, variance = native_batch_norm(input, weight, bias, *statistics, eps)
    if training and running_mean is not None:
        count = math.prod(input._data.shape) // max(input._data.shape[1], 1)
        unbiased = variance._data * (count / (count - 1)) if count > 1 else variance._data * np.nan
        move_towards(running_mean, mean._data, momentum)
        move_towards(running_var, unbiased, momentum)
    return out, mean, variance


def move_towards(running: TensorState, found: np.ndarray, momentum: float) -> None:
    """Write (1 − momentum) · running + momentum · found into a running statistic."""
    data = writable(running)
    begin_write(running, "batch_norm", user_place(1))
    data[...] = data * (1 - momentum) + found * momentum
    end_write(running)


@op(
    outputs=3,
    differentiable=(0,),
    residuals=("mean", "inverse"),
    zero_derivative=("input", "weight"),
    dtype_error=no_integers("batch_norm"),
    layout="suggested",
)
def native_batch_norm(
    xp,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    eps: float,
):
    """Return (x − mean) / √(variance + eps) · weight + bias for each channel, and means and variances."""
    x, scale, shift = np.ascontiguousarray(widened(input)), widened(weight), widened(bias)
    if running_mean is None:
        out, mean, inverse, variance = channels.channels_normalised(x, scale, shift, 0, float(eps))
    else:
        kind = x.dtype
        mean, variance = (widened(one).astype(kind).reshape((1, -1, 1)) for one in (running_mean, running_var))
        inverse = xp.reciprocal(xp.sqrt(variance + kind.type(eps)))
        out = channels.channels_scaled(x, mean, inverse, scale, shift)
    out = rounded(out, input.dtype)
    return (out, mean.reshape(-1), variance.reshape(-1)), mean, inverse


@native_batch_norm.derivative(
    "input",
    "weight",
    "bias",
    formula="with g = grad · weight: (g − mean(g) − n · mean(g · n)) / √(variance + eps); Σ grad · n; Σ grad",
)
def native_batch_norm_all(grad, input, weight, running_mean, mean, inverse, needs, xp):
    return _gradients(grad, input, weight, mean, inverse, running_mean is not None, needs)


@native_batch_norm.decomposition
def native_batch_norm_decomposition(input, weight, bias, running_mean, running_var, eps):
    dims, shape = (0, *range(2, input.ndim)), (1, -1) + (1,) * (input.ndim - 2)
    mean = input.mean(dims, keepdim=True) if running_mean is None else running_mean.reshape(shape)
    centred = input - mean
    variance = (centred * centred).mean(dims, keepdim=True) if running_var is None else running_var.reshape(shape)
    return _scaled_and_shifted(centred * (variance + eps).rsqrt(), weight, bias)


def check_channels(input, running_mean, running_var, weight, bias, training: bool) -> None:
    """Raise PyTorch's error unless each vector has one number a channel, and what evaluation needs is there."""
    if input._data.ndim < 2:
        raise ShapeError(f"batch_norm needs at least 2 dims, (batch, channels, …), got {list(input._data.shape)}")
    vectors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    channels = input._data.shape[1]
    for name, vector in vectors.items():
        if vector is None:
            if not training and name.startswith("running"):
                raise ShapeError(f"{name} must be defined in evaluation mode")
        elif vector._data.size != channels:
            raise ShapeError(f"{name} should contain {channels} elements not {vector._data.size}")
        elif not vector._data.ndim and input._data.size:
            raise ShapeError(f"TensorAccessor expected 1 dims but tensor has 0: {name} is a vector")
    parameters = (weight, bias, running_mean, running_var)
    check_float(input._data, "batch_norm")
    check_parameter_dtypes(input._data, tuple(one if one is None else one._data for one in parameters))


def check_several(shape: Sequence[int], what: str, shown: Sequence[int] | None = None) -> None:
    """Raise PyTorch's error if statistics would be taken of a single number."""
    if shape[0] * math.prod(shape[2:]) == 1:
        size = shown if isinstance(shown, list) else Size(shown or shape)
        raise ValueProblem(f"Expected more than 1 {what} when training, got input size {size}: one has no variance")


@composite_function
def instance_norm(
    input: TensorState,
    running_mean: TensorState | None = None,
    running_var: TensorState | None = None,
    weight: TensorState | None = None,
    bias: TensorState | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
):
    """Normalise each channel of each example over space, then scale and shift the channel.

    Shapes: input (batch, channels, …), all others (channels,) -> as input
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise ShapeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    shape = input._data.shape
    batch, channels = shape[:2]

    def for_each(vector: TensorState | None):
        return None if vector is None else vector.repeat(batch)

    means, variances = for_each(running_mean), for_each(running_var)
    joined = input.reshape((1, batch * channels, *shape[2:]))
    out = batch_norm(joined, means, variances, for_each(weight), for_each(bias), use_input_stats, momentum, eps)
    if use_input_stats:
        for running, moved in ((running_mean, means), (running_var, variances)):
            if running is not None:
                move_towards(running, moved.reshape((batch, channels))._data.mean(0), 1.0)
    return out.reshape(shape)
