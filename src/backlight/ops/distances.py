"""Distances and angles between vectors."""

import math

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.errors import ShapeError
from backlight.graph.state import wrap
from backlight.kernels import rows
from backlight.kernels.halves import rounded, widened
from backlight.ops.declare import op
from backlight.ops.operands import sum_to_shape
from backlight.ops.promotion import common_dtype, is_float
from backlight.ops.repeating import broadcast_tensors

__all__ = ["cdist", "cosine_similarity", "pairwise_distance", "pdist"]


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Return the cosine of the angle between vectors along `dim`; other dims broadcast.

    x1 · x2 / (max(|x1|, eps) · max(|x2|, eps))
    """
    kind = common_dtype([x1._data, x2._data])
    if not is_float(kind):
        raise ShapeError(
            f"expected common dtype to be floating point, yet common dtype is {from_numpy_dtype(kind).old_name}; "
            "convert with .float()"
        )
    x1, x2 = broadcast_tensors(x1.to(from_numpy_dtype(kind)), x2.to(from_numpy_dtype(kind)))
    return ((x1 / _length(x1, dim, eps)) * (x2 / _length(x2, dim, eps))).sum(dim)


def _length(x, dim, eps):
    """Return the lengths of vectors, raised to eps; the gradient is that of the length itself, as in PyTorch."""
    length = x.norm(2, dim, keepdim=True)
    values = length._data
    if values.size and values.min() < eps:
        length = length + (length.detach().clamp_min(eps) - length.detach())
    return length


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """Return the p-norm of x1 − x2 + eps over the last dim."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def pdist(input, p=2.0):
    """Return the p-norm distances between all pairs of rows, row 0 with all others first.

    Shapes: input (n, dim) -> (n · (n − 1) / 2,)
    """
    if input._data.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input._data.ndim}D")
    if p < 0:
        raise ShapeError(f"pdist only supports non-negative p values, got {p}")
    first, second = (wrap(places) for places in np.triu_indices(input._data.shape[0], 1))
    return (input.index_select(0, first) - input.index_select(0, second)).norm(p, -1)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Return the p-norm distances between each row of x1 and each row of x2.

    Shapes: x1 (…, n, dim), x2 (…, m, dim) -> (…, n, m)

    Args:
        compute_mode: whether distances of p = 2 may come from a matrix product, which is faster and loses digits where
            two rows are close: "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", or for more than 25 rows only.
    """
    first, second = x1._data, x2._data
    for name, array in (("X1", first), ("X2", second)):
        if array.ndim < 2:
            raise ShapeError(f"cdist only supports at least 2D tensors, {name} got: {array.ndim}D")
    if first.shape[-1] != second.shape[-1]:
        raise ShapeError(
            f"X1 and X2 must have the same number of columns. X1: {first.shape[-1]} X2: {second.shape[-1]}"
        )
    if p < 0:
        raise ShapeError(f"cdist only supports non-negative p values, got {p}")
    many = max(first.shape[-2], second.shape[-2]) > 25
    by_product = p == 2 and compute_mode != "donot_use_mm_for_euclid_dist"
    return distances(x1, x2, float(p), by_product and (many or compute_mode == "use_mm_for_euclid_dist"))


@op(name="cdist")
def distances(xp, x1, x2, p: float, by_product: bool):
    """Distances between rows."""
    a, b = widened(x1), widened(x2)
    if by_product:
        squares = rows.dots(a, a) + rows.dots(b, b).mT - 2 * (a @ b.mT)
        return rounded(xp.sqrt(xp.maximum(squares, 0)), x1.dtype)
    return rounded(lengths(xp, xp.abs(a[..., :, None, :] - b[..., None, :, :]), p), x1.dtype)


def lengths(xp, sizes, p: float):
    """Return the p-norm of numbers ≥ 0 over the last dim."""
    if p == 0:
        return (sizes != 0).sum(-1).astype(sizes.dtype)
    if p == math.inf:
        return sizes.max(-1) if sizes.shape[-1] else xp.zeros(sizes.shape[:-1], sizes.dtype)
    if p == 1:
        return sizes.sum(-1)
    if p == 2:
        return xp.sqrt(xp.vecdot(sizes, sizes))
    return (sizes**p).sum(-1) ** (1 / p)


@distances.derivative("x1", "x2", formula="± grad · sign(d) · |d|^(p − 1) / distance^(p − 1) with d = x1 − x2, 0 at 0")
def distances_both(grad, x1, x2, out, p, needs, xp):
    a, b, lengths_ = widened(x1), widened(x2), widened(out)
    with xp.errstate(all="ignore"):
        if p == 2:
            weights = xp.where(lengths_ == 0, 0, widened(grad) / lengths_)
            g_x1 = rows.sums(weights) * a - weights @ b
            g_x2 = rows.sums(weights.mT) * b - weights.mT @ a
        else:
            slopes = widened(grad)[..., None] * slopes_of(xp, a[..., :, None, :] - b[..., None, :, :], lengths_, p)
            g_x1, g_x2 = slopes.sum(-2), -slopes.sum(-3)
    return (
        rounded(sum_to_shape(g_x1, x1.shape), x1.dtype) if needs[0] else None,
        rounded(sum_to_shape(g_x2, x2.shape), x2.dtype) if needs[1] else None,
    )


def slopes_of(xp, differences, lengths_, p: float):
    """Return the derivative of the p-norm for each number of the last dim."""
    sizes, lengths_ = xp.abs(differences), lengths_[..., None]
    if p == 0:
        return xp.zeros_like(differences)
    if p == 1:
        return xp.sign(differences)
    if p == math.inf:
        return xp.sign(differences) * (sizes == lengths_)
    found = xp.sign(differences) * (sizes / lengths_) ** (p - 1)
    return xp.where((lengths_ == 0) | (sizes == 0), 0, found)


@distances.composed
def distances_composed(x1, x2, p, by_product):
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)
