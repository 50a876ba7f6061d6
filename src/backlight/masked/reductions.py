"""Reductions of the elements where a mask is True.

Each fills masked elements with the neutral value: 0 in a sum, 1 in a product, −∞ in a maximum.
"""

import math

from backlight import dtypes
from backlight.errors import ValueProblem
from backlight.masked.masks import filled, highest, lowest, sorted_dims
from backlight.ops.elementwise import powers
from backlight.ops.reduction import extremes, norms, quantiles, reductions

SMALL = (dtypes.uint8, dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32)


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the sum of the elements where `mask` is True, over `dim` (all dims by default).

    Args:
        mask: bools that broadcast to the input; False excludes an element.
    """
    kind = _sum_dtype(input) if dtype is None else dtype
    return reductions.sum(filled(input, mask, 0), sorted_dims(dim, input.ndim), bool(keepdim), dtype=kind)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the product of the elements where `mask` is True, over `dim` (all dims by default)."""
    result = filled(input, mask, 1).to(_sum_dtype(input) if dtype is None else dtype)
    for one in reversed(sorted_dims(dim, input.ndim)):
        result = reductions.prod(result, one, bool(keepdim))
    return result


def _sum_dtype(input):
    return dtypes.int64 if input.dtype in SMALL else input.dtype


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the largest of the elements where `mask` is True, over `dim`; −∞ where there is none."""
    values = filled(input, mask, lowest)
    return extremes.amax(values, sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the smallest of the elements where `mask` is True, over `dim`; +∞ where there is none."""
    values = filled(input, mask, highest)
    return extremes.amin(values, sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the index of the largest of the elements where `mask` is True, in the dtype of the input."""
    found = extremes.argmax(filled(input, mask, lowest), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the index of the smallest of the elements where `mask` is True, in the dtype of the input."""
    found = extremes.argmin(filled(input, mask, highest), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return log Σ exp(x) of the elements where `mask` is True, over `dim` (all dims by default)."""
    values = filled(input, mask, lowest)
    return reductions.logsumexp(values, sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Return log(exp(input) + exp(other)), where a mask may exclude either."""
    first, second = filled(input, input_mask, lowest), filled(other, other_mask, lowest)
    return powers.logaddexp(first, second).to(dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the norm of the elements where `mask` is True, over `dim` (all dims by default)."""
    values = filled(input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(values, ord, sorted_dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Return the median of the elements where `mask` is True, along `dim`; NaN where there is none.

    Raises:
        ValueError: a row of integers is masked out altogether, and an integer cannot be NaN.
    """
    exact = input.dtype.is_floating_point
    values = filled(input if exact else input.to(dtypes.float32), mask, math.nan)
    found = quantiles.nanmedian(values, sorted_dims(dim, input.ndim)[0], keepdim).values
    if exact:
        return found
    if bool(reductions.any(found != found)):
        raise ValueProblem(
            "masked median expects no fully masked out rows if dtype is not floating point; "
            f"convert the input from {input.dtype} with .float(), and such rows give nan"
        )
    return found.to(dtype or input.dtype)
