"""Batch norm and group norm over arrays (batch, channels, …), and their gradients.

What is normalised together is a unit: a channel over the whole batch (`groups` 0), or a group of channels of one
example. Units have one mean and one 1 / √(variance + eps), in arrays (1, channels, 1) or (batch, groups, 1).
"""

import math

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.state_blocks import silent_floats


def _planes(x: np.ndarray) -> np.ndarray:
    """Return (batch, channels, …) as (batch, channels, size)."""
    return x.reshape((*x.shape[:2], math.prod(x.shape[2:])))


def _units(x: np.ndarray, groups: int) -> np.ndarray:
    """Return a view of x (batch, units, size), or of groups (batch, groups, channels · size)."""
    return x.reshape((len(x), groups, x.shape[1] // groups * x.shape[2])) if groups else x


def _along_channels(unit: np.ndarray, channels: int) -> np.ndarray:
    """Return one number a unit as one number a channel, to multiply (batch, channels, size)."""
    return unit if unit.shape[1] == channels else np.repeat(unit, channels // unit.shape[1], axis=1)


@native
def channels_normalised(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, groups: int, eps: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bring each unit to mean 0 and variance 1, then scale and shift each channel.

    Returns:
        The result, the means, 1 / √(variance + eps) and the variances of the units: new arrays.
    """
    units, dims = _units(_planes(x), groups), (2,) if groups else (0, 2)
    with silent_floats():  # planes of no numbers have no mean
        mean = units.mean(dims, keepdims=True)
        variance = units.var(dims, keepdims=True)
    inverse = np.reciprocal(np.sqrt(variance + x.dtype.type(eps)))
    return channels_scaled(x, mean, inverse, weight, bias), mean, inverse, variance


@native
def channels_scaled(
    x: np.ndarray, mean: np.ndarray, inverse: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None
) -> np.ndarray:
    """Return (x − mean) · inverse · weight + bias, a new array."""
    shape, x = x.shape, _planes(x)
    out = x - _along_channels(mean, x.shape[1])
    out *= _along_channels(inverse, x.shape[1])
    if weight is not None:
        out *= weight[:, None]
    if bias is not None:
        out += bias[:, None]
    return out.reshape(shape)


@native
def channels_gradients(
    grad: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    inverse: np.ndarray,
    weight: np.ndarray | None,
    fixed: bool,
    needs: tuple[bool, bool, bool],
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Return the derivatives for x, weight and bias, those that `needs` tells; `fixed` statistics do not depend on x.

    With n the normal numbers and g = grad · weight: inverse · (g − mean(g) − n · mean(g · n)); Σ grad · n; Σ grad
    """
    shape, grad, x = x.shape, _planes(grad), _planes(x)
    channels, groups = x.shape[1], mean.shape[1] if len(mean) == len(x) else 0
    scale = _along_channels(inverse, channels)
    normal = (x - _along_channels(mean, channels)) * scale
    found = None
    if needs[0]:
        found = grad * scale if weight is None else grad * weight[:, None] * scale
    if needs[0] and not fixed:
        dims = (2,) if groups else (0, 2)
        weighted = _units(found, groups)
        shares = weighted - weighted.mean(dims, keepdims=True)
        rows = _units(normal, groups)
        shares -= rows * (weighted * rows).mean(dims, keepdims=True)
        found = shares
    found = None if found is None else found.reshape(shape)
    g_weight = (grad * normal).sum((0, 2)) if needs[1] else None
    return found, g_weight, grad.sum((0, 2)) if needs[2] else None
