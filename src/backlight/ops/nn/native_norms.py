"""Normalisations that also return the statistics they used, under the names that PyTorch's kernels have."""

import math
from collections.abc import Sequence

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.nn.channel_norms import batch_norm_with_statistics, group_norm
from backlight.ops.nn.normalization import layer_norm

__all__ = ["_native_batch_norm_legit", "native_batch_norm", "native_group_norm", "native_layer_norm"]


@composite_function
def native_layer_norm(
    input: TensorState, normalized_shape: Sequence[int], weight: TensorState, bias: TensorState, eps: float
):
    """Return layer norm and, for each row, the mean and 1 / √(variance + eps)."""
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    lead = tuple(input.shape[: input.ndim - len(normalized_shape)])
    rows = widened(np.asarray(input._data)).reshape(math.prod(lead), math.prod(normalized_shape))
    shape = (*lead, *(1,) * len(normalized_shape))
    return out, *_mean_and_inverse(rows, eps, shape, input._data.dtype)


@composite_function
def native_group_norm(
    input: TensorState, weight: TensorState, bias: TensorState, N: int, C: int, HxW: int, group: int, eps: float
):
    """Return group norm and, for each group of each example, the mean and 1 / √(variance + eps).

    Args:
        N: how many examples there are.
        C: how many channels.
        HxW: how many numbers a channel has.
        group: how many groups.
    """
    if group < 1:
        raise ShapeError(f"Expected num groups to be greater than 0, got {group}")
    if N * C * HxW != input._data.size:
        raise ShapeError(
            f"Expected X.numel() == N * C * HxW to be true, but got false: {N}, {C}, {HxW} for {list(input.shape)}"
        )
    if C % group:
        raise ShapeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={group}"
        )
    out = group_norm(input, group, weight, bias, eps)
    rows = widened(np.ascontiguousarray(input._data)).reshape(N * group, C * HxW // group)
    return out, *_mean_and_inverse(rows, eps, (N, group), input._data.dtype)


def _mean_and_inverse(rows: np.ndarray, eps: float, shape: tuple, kind: np.dtype) -> list:
    """Return the mean of each row and the inverse of its deviation, without history; 0 and NaN of an empty row."""
    count = rows.shape[1]
    mean = rows.sum(1) / rows.dtype.type(max(count, 1))
    spread = ((rows - mean[:, None]) ** 2).sum(1) / rows.dtype.type(count or np.nan)
    inverse = 1 / np.sqrt(spread + rows.dtype.type(eps))
    return [wrap(np.asarray(rounded(found.reshape(shape), kind))) for found in (mean, inverse)]


@composite_function
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Return batch norm and, when training, each channel's mean and 1 / √(variance + eps); else two empty tensors."""
    out, mean, variance = batch_norm_with_statistics(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    kind = next(one for one in (weight, running_mean, input) if one is not None)._data.dtype
    if not training:
        return out, wrap(np.empty(0, kind)), wrap(np.empty(0, kind))
    inverse = 1 / np.sqrt(variance._data + variance._data.dtype.type(eps))
    return out, wrap(rounded(mean._data, kind)), wrap(rounded(inverse, kind))


def _native_batch_norm_legit(input: TensorState, weight: TensorState | None, bias: TensorState | None, *rest):
    """Return what `native_batch_norm` does; the running statistics may be left out altogether."""
    if len(rest) == 3:
        return native_batch_norm(input, weight, bias, None, None, *rest)
    return native_batch_norm(input, weight, bias, *rest)


def batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """Return what `native_batch_norm` does when training, and an empty tensor: the room that other devices need."""
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *found, wrap(np.empty(0, np.uint8))
