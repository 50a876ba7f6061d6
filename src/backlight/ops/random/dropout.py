"""Dropout: random elements or channels set to zero while training."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError, ValueProblem
from backlight.kernels.memory_order import in_memory_order, model_of
from backlight.kernels.random import distributions
from backlight.kernels.random.generator import default_twister
from backlight.ops.elementwise.arithmetic import add, mul
from backlight.ops.elementwise.copying import clone
from backlight.ops.inplace import inplace
from backlight.ops.number_operands import no_kernel

__all__ = ["alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout", "native_dropout"]

# What SELU tends to for very negative inputs: alpha_dropout sets dropped elements to this.
_SATURATION = -1.7580993408473766

_mul_, _add_ = inplace(mul), inplace(add)


def kept(shape: Sequence[int], p: float, kind: np.dtype, value: float = 1.0) -> np.ndarray:
    """Return `value` with probability 1 − p and 0 else, as floats, drawn from the default generator."""
    return distributions.noise(default_twister, math.prod(shape), 1 - p, value, kind).reshape(shape)


def _kept_in(places: np.ndarray, p: float, kind: np.dtype, value: float = 1.0) -> np.ndarray:
    """Return what `kept` does for an array's elements, drawn in the order in which they lie in memory."""
    return in_memory_order(model_of(places), lambda count: kept((count,), p, kind, value))


def _features(array: np.ndarray) -> np.ndarray:
    """Return places for what drops entire channels: batch and channels, then ones.

    Raises:
        RuntimeError: there are fewer than two dims.
    """
    if array.ndim < 2:
        raise ShapeError(
            "Feature dropout requires at least 2 dimensions in the input; the first counts examples, the second "
            "channels"
        )
    return np.empty((*array.shape[:2], *(1,) * (array.ndim - 2)), array.dtype)


def check_probability(p: float) -> None:
    """Raise PyTorch's error unless p is a probability."""
    if not 0 <= p <= 1:
        raise ValueProblem(f"dropout probability has to be between 0 and 1, but got {p}")


def _check_float(kind: np.dtype) -> None:
    """Raise PyTorch's error for integers and bools, which the factor 1 / (1 − p) would make floats."""
    if kind.kind in "cW":
        raise no_kernel("bernoulli_scalar_cpu_", kind, "draw a mask of real numbers, and multiply")
    if kind.kind in "iub":
        raise ShapeError(
            f"result type Float can't be cast to the desired output type {from_numpy_dtype(kind).old_name}; convert "
            "the input with .float()"
        )


def _scaled(input: TensorState, p: float, places: np.ndarray, in_place: bool):
    """Multiply by 0 with probability p, and by 1 / (1 − p) else."""
    kind = input._data.dtype
    if p == 1:
        noise = np.zeros((), kind)
    else:
        _check_float(kind)
        wide = np.float64 if kind == np.float64 else np.float32
        noise = _kept_in(places, p, kind, wide(1) / wide(1 - p))
    return (_mul_ if in_place else mul)(input, wrap(noise))


def _saturated(input: TensorState, p: float, places: np.ndarray, in_place: bool):
    """Set to SELU's saturation with probability p; then scale and shift so that mean and variance stay.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017, arXiv 1706.02515.
    """
    kind = input._data.dtype
    if p == 1:
        return (_mul_ if in_place else mul)(input, wrap(np.zeros((), kind)))
    _check_float(kind)
    noise = _kept_in(places, p, kind)
    scale = 1 / math.sqrt((_SATURATION**2 * p + 1) * (1 - p))
    shift = ((1 - noise) * kind.type(_SATURATION * scale) - kind.type(_SATURATION * scale * p)).astype(kind, copy=False)
    product = (_mul_ if in_place else mul)(input, wrap(noise * kind.type(scale)))
    return (_add_ if in_place else add)(product, wrap(shift))


def _is_identity(input: TensorState, p: float, train: bool) -> bool:
    check_probability(p)
    return p == 0 or not train or not input._data.size


@composite_function
def dropout(input: TensorState, p: float = 0.5, train: bool = True, inplace: bool = False):
    """Set each element to 0 with probability p, and divide the others by 1 − p.

    Raises:
        ValueError: p is no probability.
    """
    return input if _is_identity(input, p, train) else _scaled(input, p, input._data, inplace)


def native_dropout(input: TensorState, p: float, train: bool):
    """Return what `dropout` does, and which elements it kept.

    Args:
        train: None stands for True.
    """
    if train is False:
        return clone(input), wrap(np.ones(input._data.shape, bool))
    if not 0 <= p <= 1:
        raise ShapeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}")
    _check_float(input._data.dtype)
    places = model_of(input._data)
    chosen = wrap(
        in_memory_order(places, lambda count: distributions.bernoulli(default_twister, count, 1 - p)).astype(bool)
    )
    return native_dropout_scaled(input, chosen, 1 / (1 - p) if p < 1 else 0.0), chosen


@op(name="native_dropout", tangent="linear")
def native_dropout_scaled(xp, input: Array, mask: Array, scale: float):
    """The elements that a mask keeps times `scale`, 0 elsewhere."""
    return input * (mask * input.dtype.type(scale))


native_dropout_scaled.derivative("input", formula="grad · scale, 0 where mask is False")(
    lambda grad, mask, scale, ops: ops.native_dropout_backward(grad, mask, scale)
)


@op(tangent="linear")
def native_dropout_backward(xp, grad_output: Array, mask: Array, scale: float):
    """The gradient of `native_dropout`: grad_output · scale, 0 where the mask is False."""
    return grad_output * (mask * grad_output.dtype.type(scale))


native_dropout_backward.derivative("grad_output", formula="grad · scale, 0 where mask is False")(
    lambda grad, mask, scale, ops: ops.native_dropout_backward(grad, mask, scale)
)


@composite_function
def feature_dropout(input: TensorState, p: float = 0.5, train: bool = True, inplace: bool = False):
    """Set whole channels (dim 1) to 0 with probability p, and divide the others by 1 − p."""
    return input if _is_identity(input, p, train) else _scaled(input, p, _features(input._data), inplace)


@composite_function
def alpha_dropout(input: TensorState, p: float = 0.5, train: bool = False, inplace: bool = False):
    """Set elements to SELU's saturation with probability p, keeping mean and variance."""
    return input if _is_identity(input, p, train) else _saturated(input, p, input._data, inplace)


@composite_function
def feature_alpha_dropout(input: TensorState, p: float = 0.5, train: bool = False, inplace: bool = False):
    """Set whole channels (dim 1) to SELU's saturation with probability p, keeping mean and variance."""
    return input if _is_identity(input, p, train) else _saturated(input, p, _features(input._data), inplace)


def dropout1d(input: TensorState, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Drop whole channels of (channels, length) or (batch, channels, length)."""
    check_probability(p)
    dims = input._data.ndim
    if dims not in (2, 3):
        raise ShapeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _channels(input, p, training, inplace, batched=dims == 3)


def dropout2d(input: TensorState, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Drop whole channels of (batch, channels, height, width)."""
    check_probability(p)
    dims = input._data.ndim
    if dims not in (3, 4):
        _warn_dims("dropout2d", dims, "2", "3D or 4D")
    if dims == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will "
            "change in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, "
            "W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=2,
        )
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: TensorState, p: float = 0.5, training: bool = True, inplace: bool = False):
    """Drop whole channels of (channels, depth, height, width), with or without a batch dim before."""
    check_probability(p)
    dims = input._data.ndim
    if dims not in (4, 5):
        _warn_dims("dropout3d", dims, "3", "4D or 5D")
    return _channels(input, p, training, inplace, batched=dims == 5)


def _channels(input: TensorState, p: float, training: bool, inplace: bool, batched: bool):
    """Drop channels, which are dim 0 where there is no batch."""
    if batched:
        return feature_dropout(input, p, training, inplace)
    return feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)


def _warn_dims(name: str, dims: int, spatial: str, expected: str) -> None:
    warnings.warn(
        f"{name}: Received a {dims}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
        f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, "
        f"and an optional batch dimension (i.e. {expected} inputs).",
        UserWarning,
        stacklevel=3,
    )
