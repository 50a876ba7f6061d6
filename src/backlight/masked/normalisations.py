"""Masked softmax, log_softmax, softmin, normalize, cumsum and cumprod along a dim."""

from backlight.masked.masks import filled, highest, lowest, sorted_dims
from backlight.masked.reductions import norm
from backlight.ops.nn import softmax as unmasked
from backlight.ops.reduction import scans


def cumsum(input, dim, *, dtype=None, mask=None):
    """Return the cumulative sums along `dim` of the elements where `mask` is True."""
    kind = dtype or input.dtype
    return scans.cumsum(filled(input, mask, 0), sorted_dims(dim, input.ndim)[0], dtype=kind).to(kind)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Return the cumulative products along `dim` of the elements where `mask` is True."""
    kind = dtype or input.dtype
    return scans.cumprod(filled(input, mask, 1), sorted_dims(dim, input.ndim)[0], dtype=kind).to(kind)


def softmax(input, dim, *, dtype=None, mask=None):
    """Return exp(x) / Σ exp(x) along `dim`, 0 where `mask` is False."""
    values = filled(input, mask, lowest(input.dtype))
    return unmasked.softmax(values, sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Return the logarithm of softmax along `dim`, −∞ where `mask` is False."""
    values = filled(input, mask, lowest(input.dtype))
    return unmasked.log_softmax(values, sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Return exp(−x) / Σ exp(−x) along `dim`, 0 where `mask` is False."""
    values = filled(input, mask, highest(input.dtype))
    return unmasked.softmax(-values, sorted_dims(dim, input.ndim)[0], dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Return the elements where `mask` is True divided by their norm along `dim` (or by `eps`)."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return filled(input, mask, 0) / length.clamp_min(eps)
