"""The standard's elementwise, statistical and cumulative functions."""

from collections.abc import Callable
from functools import wraps

import numpy as np

from backlight.codegen.runtime_support import is_number
from backlight.dtypes import dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ValueProblem
from backlight.ops.elementwise import comparisons, complex_numbers, rounding, where_clamp
from backlight.ops.reduction import extremes, reductions, scans, statistics
from backlight.ops.shape.joining import cat
from backlight.ops.type_promotion import check_scalar, scalar_dtype
from backlight.tensor.interop.numpy_ufuncs import STANDARD, axes_of

__all__ = ["all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod"]
__all__ += ["std", "sum", "var"]

Axes = int | tuple[int, ...] | None
Dtype = dtype | None


def _over(op: Callable):
    """Return a reduction over axes: all by default, none for an empty tuple."""

    def reduce(x: TensorState, /, *, axis: Axes = None, keepdims: bool = False):
        dims = axes_of(axis, x.ndim)
        return op(x, dims, keepdims) if dims else x.clone()

    return reduce


def _truth(op: Callable):
    def reduce(x: TensorState, /, *, axis: Axes = None, keepdims: bool = False):
        dims = axes_of(axis, x.ndim)
        return op(x.bool(), dims, keepdims) if dims else x.bool()

    return reduce


def _spread(op: Callable):
    def reduce(x: TensorState, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False):
        return op(x, axes_of(axis, x.ndim), correction=correction, keepdim=keepdims)

    return reduce


all = _truth(reductions.all)
any = _truth(reductions.any)
max = _over(extremes.amax)
mean = _over(reductions.mean)
min = _over(extremes.amin)
std = _spread(statistics.std)
var = _spread(statistics.var)


def sum(x: TensorState, /, *, axis: Axes = None, dtype: Dtype = None, keepdims: bool = False):
    """Sum over some axes; integers in int64."""
    dims = axes_of(axis, x.ndim)
    return reductions.sum(x, dims, keepdims, dtype=dtype) if dims else _accumulated(x, dtype).clone()


def prod(x: TensorState, /, *, axis: Axes = None, dtype: Dtype = None, keepdims: bool = False):
    """Multiply over some axes; integers in int64."""
    found = _accumulated(x, dtype)
    for dim in sorted(axes_of(axis, x.ndim), reverse=True):
        found = reductions.prod(found, dim, keepdims)
    return found


def _accumulated(x: TensorState, dtype: Dtype):
    """Return elements in the dtype of sums and products."""
    if dtype is not None:
        to_numpy_dtype(dtype)
        return x.to(dtype)
    return x if x.is_floating_point() else x.long()


def count_nonzero(x: TensorState, /, *, axis: Axes = None, keepdims: bool = False):
    """Count the nonzero elements."""
    return sum(x.bool(), axis=axis, keepdims=keepdims)


def cumulative_sum(x: TensorState, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False):
    """Return cumulative sums along an axis, which may be left out for one dim."""
    return _scanned(scans.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: TensorState, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False):
    """Return cumulative products along an axis, which may be left out for one dim."""
    return _scanned(scans.cumprod, x, axis, dtype, 1 if include_initial else None)


def _scanned(op: Callable, x: TensorState, axis: int | None, dtype: Dtype, initial: int | None):
    if axis is None and x.ndim != 1:
        raise ValueProblem(f"axis must be given for a tensor of {x.ndim} dims; it may be left out for one dim")
    dim = 0 if axis is None else axis
    found = op(_accumulated(x, dtype), dim)
    if initial is None:
        return found
    first = [1 if place == dim % x.ndim else size for place, size in enumerate(x.shape)]
    return cat([found.new_full(first, initial), found], dim)


def diff(x: TensorState, /, n: int = 1, axis: int = -1, *, prepend=None, append=None):
    """Return the differences of adjacent elements."""
    return scans.diff(x, n, axis, prepend, append)


# --- elementwise: ops under the standard's names; binary ones take a Python number for either operand -----------------

_COMPARISONS = """
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor greater greater_equal isfinite isinf isnan
less less_equal logical_and logical_not logical_or logical_xor not_equal signbit
"""
OPS: dict[str, Callable] = {
    **STANDARD,
    **{name: getattr(comparisons, name) for name in _COMPARISONS.split()},
    "bitwise_invert": comparisons.bitwise_not,
    "equal": comparisons.eq,
    "nextafter": rounding.nextafter,
    "real": complex_numbers.real,
    "round": rounding.round,
}
TAKES_NUMBERS = {name for name in OPS if getattr(getattr(np, name), "nin", 1) == 2} - {"pow"}  # whose op does itself
__all__ += [*OPS, "clip"]


def _with_numbers(function: Callable) -> Callable:
    """Return a binary function that takes numbers, too."""

    @wraps(function)
    def of_two(x1, x2, /):
        return function(_as_tensor(x1), _as_tensor(x2))

    return of_two


def _as_tensor(value):
    if isinstance(value, TensorState) or not is_number(value):
        return value
    check_scalar(value)
    return wrap(np.asarray(value, scalar_dtype(value)))


globals().update({name: _with_numbers(found) if name in TAKES_NUMBERS else found for name, found in OPS.items()})


def clip(x: TensorState, /, min: float | TensorState | None = None, max: float | TensorState | None = None):
    """Clamp the elements; without limits, return a copy."""
    return x.clone() if min is None and max is None else where_clamp.clamp(x, min, max)
