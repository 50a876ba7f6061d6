"""Masks broadcast to an input, and the input with masked elements replaced by a neutral value."""

import numpy as np

from backlight import dtypes
from backlight.engine.tensor_state import wrap
from backlight.errors import DimError
from backlight.ops.dims import normalise_dims
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.shape.expanding import broadcast_to


def mask_like(input, mask):
    """Return a mask in the shape of `input`, as bools.

    Raises:
        IndexError: the mask has more dims than the input.
    """
    if mask.ndim > input.ndim:
        raise DimError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input); "
            f"the mask has shape {list(mask.shape)}, the input {list(input.shape)}"
        )
    return broadcast_to(mask, tuple(input.shape)).to(dtypes.bool)


def filled(input, mask, value):
    """Return the input with `value` wherever the mask is False; all of it where there is no mask.

    Args:
        value: a number, or a function of the dtype that gives it.
    """
    if mask is None:
        return input
    value = value(input.dtype) if callable(value) else value
    return where(mask_like(input, mask), input, wrap(np.array(value).astype(input._data.dtype)))


def lowest(dtype):
    """Return the smallest value of a dtype."""
    return -np.inf if dtype.is_floating_point else dtypes.iinfo(dtype).min


def highest(dtype):
    """Return the largest value of a dtype."""
    return np.inf if dtype.is_floating_point else dtypes.iinfo(dtype).max


def sorted_dims(dim, ndim: int) -> tuple[int, ...]:
    """Return the dims to reduce over, non-negative and sorted: all for None and ()."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    return tuple(sorted(normalise_dims(dim, ndim)))
