"""Means, variances and standard deviations of the elements where a mask is True."""

from backlight import dtypes
from backlight.errors import ArgumentError, ValueProblem
from backlight.masked.masks import mask_like, sorted_dims
from backlight.masked.reductions import sum
from backlight.ops.reduction import reductions
from backlight.ops.shape.reshaping import reshape


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Return the mean of the elements where `mask` is True, over `dim`; NaN where there is none.

    Raises:
        ValueError: the dtype of the result would not be floating point.
    """
    kind = input.dtype if dtype is None else dtype
    if not kind.is_floating_point:
        source = "Input" if dtype is None else "Optional"
        raise ValueProblem(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}; pass dtype=torch.float32"
        )
    mask = None if mask is None else mask_like(input, mask)
    total = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dim, mask, bool(keepdim))


def _count(input, dim, mask, keepdim: bool):
    """Return the number of elements of each result."""
    dims = sorted_dims(dim, input.ndim)
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
    kind = dtype or (input.dtype if input.dtype.is_floating_point else dtypes.float32)
    wide = kind if kind.is_floating_point else dtypes.float32
    mask = None if mask is None else mask_like(input, mask)
    count = _count(input, dim, mask, True)
    apart = input - sum(input, dim, keepdim=True, dtype=kind, mask=mask) / count
    total = sum(apart * apart, dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count if keepdim else reshape(count, tuple(total.shape))
    freedom = (count.to(wide) - correction).clamp(min=0) if correction else count
    return (total / freedom).to(kind)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Return the standard deviation of the elements where `mask` is True: the root of `var`."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()
