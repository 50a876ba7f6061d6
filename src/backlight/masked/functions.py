"""Reductions and normalisations of the elements where a mask is True.

Each fills masked elements with the neutral value: 0 in a sum, 1 in a product, −∞ in a maximum.
"""

import math

import numpy as np

from backlight import dtypes
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, DimError, ValueProblem
from backlight.ops.dims import normalise_dims
from backlight.ops.elementwise import powers
from backlight.ops.elementwise.complex_numbers import conj
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.nn import softmax as unmasked
from backlight.ops.reduction import extremes, norms, quantiles, reductions, scans
from backlight.ops.shape.expanding import broadcast_to
from backlight.ops.shape.reshaping import reshape
from backlight.ops.type_promotion import has_gradient

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | tuple[int, ...] | None
Dtype = dtypes.dtype | None
Mask = TensorState | None
SMALL = (dtypes.uint8, dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32)


def _mask_like(input: TensorState, mask: TensorState):
    """Return a mask in the shape of `input`, as bools."""
    if mask.ndim > input.ndim:
        raise DimError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input); "
            f"the mask has shape {list(mask.shape)}, the input {list(input.shape)}"
        )
    return broadcast_to(mask, tuple(input.shape)).to(dtypes.bool)


def _filled(input: TensorState, mask: Mask, value):
    """Return the input with `value` wherever the mask is False; all of it where there is no mask.

    Args:
        value: a number, or a function of the dtype that gives it.
    """
    if mask is None:
        return input
    value = value(input.dtype) if callable(value) else value
    return where(_mask_like(input, mask), input, wrap(np.array(value).astype(input._data.dtype)))


def _lowest(dtype: dtypes.dtype):
    """Return the smallest value of a dtype."""
    return -np.inf if dtype.is_floating_point else dtypes.iinfo(dtype).min


def _highest(dtype: dtypes.dtype):
    """Return the largest value of a dtype."""
    return np.inf if dtype.is_floating_point else dtypes.iinfo(dtype).max


def _sorted_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dims to reduce over, non-negative and sorted: all for None and ()."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    return tuple(sorted(normalise_dims(dim, ndim)))


def sum(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the sum of the elements where `mask` is True, over `dim` (all dims by default).

    Args:
        mask: bools that broadcast to the input; False excludes an element.
    """
    kind = _sum_dtype(input) if dtype is None else dtype
    return reductions.sum(_filled(input, mask, 0), _sorted_dims(dim, input.ndim), bool(keepdim), dtype=kind)


def prod(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the product of the elements where `mask` is True, over `dim` (all dims by default)."""
    result = _filled(input, mask, 1).to(_sum_dtype(input) if dtype is None else dtype)
    for one in reversed(_sorted_dims(dim, input.ndim)):
        result = reductions.prod(result, one, bool(keepdim))
    return result


def _sum_dtype(input: TensorState):
    return dtypes.int64 if input.dtype in SMALL else input.dtype


def amax(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the largest of the elements where `mask` is True, over `dim`; −∞ where there is none."""
    values = _filled(input, mask, _lowest)
    return extremes.amax(values, _sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the smallest of the elements where `mask` is True, over `dim`; +∞ where there is none."""
    values = _filled(input, mask, _highest)
    return extremes.amin(values, _sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the index of the largest of the elements where `mask` is True, in the dtype of the input."""
    found = extremes.argmax(_filled(input, mask, _lowest), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the index of the smallest of the elements where `mask` is True, in the dtype of the input."""
    found = extremes.argmin(_filled(input, mask, _highest), dim, bool(keepdim))
    return found.to(dtype or input.dtype)


def logsumexp(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return log Σ exp(x) of the elements where `mask` is True, over `dim` (all dims by default)."""
    values = _filled(input, mask, _lowest)
    return reductions.logsumexp(values, _sorted_dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Return log(exp(input) + exp(other)), where a mask may exclude either."""
    first, second = _filled(input, input_mask, _lowest), _filled(other, other_mask, _lowest)
    return powers.logaddexp(first, second).to(dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the norm of the elements where `mask` is True, over `dim` (all dims by default)."""
    values = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(values, ord, _sorted_dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)


def median(input: TensorState, dim: int = -1, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the median of the elements where `mask` is True, along `dim`; NaN where there is none.

    Raises:
        ValueError: a row of integers is masked out altogether, and an integer cannot be NaN.
    """
    exact = input.dtype.is_floating_point
    values = _filled(input if exact else input.to(dtypes.float32), mask, math.nan)
    found = quantiles.nanmedian(values, _sorted_dims(dim, input.ndim)[0], keepdim).values
    if exact:
        return found
    if bool(reductions.any(found != found)):
        raise ValueProblem(
            "masked median expects no fully masked out rows if dtype is not floating point; "
            f"convert the input from {input.dtype} with .float(), and such rows give nan"
        )
    return found.to(dtype or input.dtype)


def mean(input: TensorState, dim: Dims = None, *, keepdim: bool = False, dtype: Dtype = None, mask: Mask = None):
    """Return the mean of the elements where `mask` is True, over `dim`; NaN where there is none.

    Raises:
        ValueError: the dtype of the result would not be floating point.
    """
    kind = input.dtype if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueProblem(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}; pass dtype=torch.float32"
        )
    mask = None if mask is None else _mask_like(input, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dim, mask, bool(keepdim))


def _count(input: TensorState, dim: Dims, mask: Mask, keepdim: bool):
    """Return the number of elements of each result."""
    dims = _sorted_dims(dim, input.ndim)
    if mask is not None:
        return reductions.sum(mask, dims, keepdim)
    shape = tuple(input.shape)
    return reductions.sum(input.new_ones(shape, dtype=dtypes.int64), dims, keepdim)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Return the variance of the elements where `mask` is True, over `dim` (all dims by default).

    Σ (x − mean)² is divided by n − `correction`, n being the number of elements; `unbiased` is the old form of
    a correction of 1 (the default) or 0.
    """
    if unbiased is not None and correction is not None:
        raise ArgumentError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None else float(unbiased)
    kind = dtype or (input.dtype if has_gradient(input._data.dtype) else dtypes.float32)
    wide = kind if has_gradient(kind.numpy) else dtypes.float32
    mask = None if mask is None else _mask_like(input, mask)
    count = _count(input, dim, mask, True)
    apart = input - sum(input, dim, keepdim=True, dtype=kind, mask=mask) / count
    total = sum(apart * conj(apart), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count if keepdim else reshape(count, tuple(total.shape))
    freedom = (count.to(wide.to_real()) - correction).clamp(min=0) if correction else count
    return (total / freedom).to(kind)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Return the standard deviation of the elements where `mask` is True: the root of `var`."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def cumsum(input: TensorState, dim: int, *, dtype: Dtype = None, mask: Mask = None):
    """Return the cumulative sums along `dim` of the elements where `mask` is True."""
    kind = dtype or input.dtype
    return scans.cumsum(_filled(input, mask, 0), _sorted_dims(dim, input.ndim)[0], dtype=kind).to(kind)


def cumprod(input: TensorState, dim: int, *, dtype: Dtype = None, mask: Mask = None):
    """Return the cumulative products along `dim` of the elements where `mask` is True."""
    kind = dtype or input.dtype
    return scans.cumprod(_filled(input, mask, 1), _sorted_dims(dim, input.ndim)[0], dtype=kind).to(kind)


def softmax(input: TensorState, dim: int, *, dtype: Dtype = None, mask: Mask = None):
    """Return exp(x) / Σ exp(x) along `dim`, 0 where `mask` is False."""
    values = _filled(input, mask, _lowest(input.dtype))
    return unmasked.softmax(values, _sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def log_softmax(input: TensorState, dim: int, *, dtype: Dtype = None, mask: Mask = None):
    """Return the logarithm of softmax along `dim`, −∞ where `mask` is False."""
    values = _filled(input, mask, _lowest(input.dtype))
    return unmasked.log_softmax(values, _sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def softmin(input: TensorState, dim: int, *, dtype: Dtype = None, mask: Mask = None):
    """Return exp(−x) / Σ exp(−x) along `dim`, 0 where `mask` is False."""
    values = _filled(input, mask, _highest(input.dtype))
    return unmasked.softmax(-values, _sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def normalize(input: TensorState, ord: float, dim: Dims, *, eps: float = 1e-12, dtype: Dtype = None, mask: Mask = None):
    """Return the elements where `mask` is True divided by their norm along `dim` (or by `eps`)."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return _filled(input, mask, 0) / length.clamp_min(eps)
