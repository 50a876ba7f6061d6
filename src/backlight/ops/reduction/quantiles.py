"""Values by their rank: medians, modes, quantiles."""

import numpy as np

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.dispatcher import composite_function
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import DimError, ShapeError, UnsupportedError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.memory_order import in_rows
from backlight.ops.dims import kept_shape, normalise_dim, with_numpy_names
from backlight.ops.reduction.extremes import (
    SELECTED,
    picked_tangent,
    selected_gradient,
    shared_between_ties,
    tied_tangent_of_all,
)
from backlight.ops.reduction.sorting import order_along, sort
from backlight.ops.type_promotion import is_float

__all__ = ["median", "mode", "nanmedian", "nanquantile", "quantile"]


def median_of_all(input: Array, ignore_nan: bool):
    """Return the lower median of all elements; NaN if there are none, or if one is NaN and none may be ignored."""
    _check_median(input, "median_cpu")
    order = rounded(np.sort(widened(input.reshape(-1))), input.dtype)  # NaN comes last
    present = order.size if not is_float(input.dtype) else int(np.count_nonzero(order == order))
    if order.size == 0:
        return np.asarray(np.nan).astype(input.dtype)
    return order[-1] if present == 0 or (present < order.size and not ignore_nan) else order[(present - 1) // 2]


def median_along(name: str, input: Array, dim: int, keepdim: bool, ignore_nan: bool):
    """Return (values, indices) of the lower median along `dim`; the first NaN where one counts."""
    _check_median(input, "median_out")
    dim = normalise_dim(dim, input.ndim)
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    length = input.shape[dim]
    if length == 0:
        raise DimError(f"median(): Expected reduction dim {dim} to have non-zero size.")
    present = np.count_nonzero(input == input, dim, keepdims=True)
    rank = np.maximum(present - 1, 0) // 2
    if not ignore_nan:
        rank = np.where(present < length, present, rank)
    indices = np.take_along_axis(order_along(input, dim), rank, dim)
    values = np.take_along_axis(input, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _check_median(input: Array, kernel: str) -> None:
    if input.dtype == np.bool_:
        raise UnsupportedError(f"\"{kernel}\" not implemented for 'Bool'\n  Convert it first (.int())")


@op(node="MedianBackward0")
def median_all(xp, input: Array):
    """The lower median of all elements."""
    return median_of_all(input, False)


median_all.tangent("input")(tied_tangent_of_all)
median_all.derivative("input", formula="grad, shared equally by the elements that equal the median")(
    lambda grad, input, out, ops: shared_between_ties(grad, input, out, None, ops)
)


@op(node="NanmedianBackward0")
def nanmedian_all(xp, input: Array):
    """The lower median of all elements that are not NaN."""
    return median_of_all(input, True)


nanmedian_all.tangent("input")(tied_tangent_of_all)
nanmedian_all.derivative("input", formula="grad, shared equally by the elements that equal the median")(
    lambda grad, input, out, ops: shared_between_ties(grad, input, out, None, ops)
)


@op(node="MedianBackward1", **SELECTED, returns=return_types.median, layout="rows")
def median_dim(xp, input: Array, dim: int, keepdim: bool = False):
    """The lower medians along `dim`, and where they are."""
    values, indices = median_along("median", input, dim, keepdim, False)
    return (values, indices), xp.array(indices)


median_dim.derivative("input", formula="grad at the median, 0 elsewhere")(selected_gradient)
median_dim.tangent("input")(picked_tangent)


@op(node="NanmedianBackward1", **SELECTED, returns=return_types.nanmedian, layout="rows")
def nanmedian_dim(xp, input: Array, dim: int, keepdim: bool = False):
    """The lower medians along `dim` of the elements that are not NaN, and where they are."""
    values, indices = median_along("nanmedian", input, dim, keepdim, True)
    return (values, indices), xp.array(indices)


nanmedian_dim.derivative("input", formula="grad at the median, 0 elsewhere")(selected_gradient)
nanmedian_dim.tangent("input")(picked_tangent)


@with_numpy_names
def median(input: TensorState, dim: int | None = None, keepdim: bool = False):
    """Return the lower median of all elements; with `dim`, (values, indices) along it. One NaN makes it NaN."""
    return median_all(input) if dim is None else median_dim(input, dim, keepdim)


@with_numpy_names
def nanmedian(input: TensorState, dim: int | None = None, keepdim: bool = False):
    """Return the lower median of all elements that are not NaN; with `dim`, (values, indices) along it."""
    return nanmedian_all(input) if dim is None else nanmedian_dim(input, dim, keepdim)


@op(name="mode", **SELECTED, returns=return_types.mode, layout="rows")
def mode_dim(xp, input: Array, dim: int = -1, keepdim: bool = False):
    """The most frequent values along `dim`, and where each occurs last."""
    values, indices = most_frequent(xp, input, normalise_dim(dim, input.ndim), keepdim)
    return (values, indices), xp.array(indices)


def most_frequent(xp, input: Array, dim: int, keepdim: bool):
    """Return (values, indices) of the most frequent value along `dim`, the least among equally frequent ones."""
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    length = input.shape[dim]
    if length == 0 and input.size == 0 and 0 not in input.shape[:dim] + input.shape[dim + 1 :]:
        raise DimError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    order = xp.moveaxis(order_along(input, dim), dim, -1)
    ordered = xp.take_along_axis(xp.moveaxis(input, dim, -1), order, -1)
    places = np.arange(length)
    begins = np.ones(ordered.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    run = places - xp.maximum.accumulate(xp.where(begins, places, 0), -1)
    longest = run.argmax(-1)[..., None] if length else np.zeros((*run.shape[:-1], 1), np.int64)
    found = [xp.moveaxis(xp.take_along_axis(part, longest, -1), -1, dim) for part in (ordered, order)]
    return tuple(in_rows(part if keepdim else part.squeeze(dim)) for part in found)


mode_dim.derivative("input", formula="grad where the mode occurs last, 0 elsewhere")(selected_gradient)
mode_dim.tangent("input")(picked_tangent)


@with_numpy_names
def mode(input: TensorState, dim: int = -1, keepdim: bool = False):
    """Return the most frequent values along `dim` and where each occurs last, as (values, indices)."""
    return mode_dim(input, dim, keepdim)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@composite_function
@with_numpy_names
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """Return the q-th quantiles (q from 0 to 1, a number or a 1-d tensor) of all elements or along `dim`.

    Args:
        interpolation: between neighbours "linear", "midpoint", or one of them by "lower", "higher", "nearest".
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@composite_function
@with_numpy_names
def nanquantile(
    input: TensorState, q: float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
):
    """Return the q-th quantiles as `quantile` does, of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(name, input, q, dim, keepdim, interpolation, ignore_nan):
    q = _checked_quantile(name, input, q, interpolation)
    rows = input.reshape(-1) if dim is None else input.movedim(normalise_dim(dim, input.ndim), -1)
    rows = sort(rows.reshape(1) if rows.ndim == 0 else rows, -1).values
    last = rows.shape[-1] - 1
    missing = (rows != rows).sum(-1, keepdim=True)
    if ignore_nan:
        ranks = q.reshape(-1) * (last - missing).clamp(min=0).to(rows.dtype)
    else:
        ranks = TENSOR_OPS.where(missing > 0, wrap(np.asarray(last, rows._data.dtype)), q.reshape(-1) * last)
    found = _between(rows, ranks, interpolation)
    if keepdim:
        kept = kept_shape(input.shape, dim)
        return found.movedim(-1, 0).reshape(tuple(q.shape) + kept)
    return found.movedim(-1, 0) if q.ndim else found.squeeze(-1)


def _between(rows: TensorState, ranks: TensorState, interpolation: str):
    """Return the values of sorted rows at ranks that need not be whole."""
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
        return rows.gather(-1, ranks.long())
    below = ranks.detach().floor()
    lower, upper = rows.gather(-1, below.long()), rows.gather(-1, ranks.detach().ceil().long())
    weight = ranks - below if interpolation == "linear" else ((ranks.detach() > below) * 0.5).to(rows.dtype)
    return TENSOR_OPS.lerp(lower, upper, weight)


def _checked_quantile(name: str, input: TensorState, q: TensorState | float, interpolation: str):
    """Return q as a tensor, or raise PyTorch's error for wrong arguments."""
    kind = input._data.dtype
    if kind not in (np.float32, np.float64):
        raise ShapeError(f"{name}() input tensor must be either float or double dtype\n  Convert it first (.float())")
    if input._data.size == 0:
        raise ShapeError(f"{name}() input tensor must be non-empty")
    if interpolation not in INTERPOLATIONS:
        raise ShapeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, TensorState):
        if not 0 <= q <= 1:
            raise ShapeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return wrap(np.array(q, kind))
    if q.ndim > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor")
    if q._data.dtype != kind:
        raise ShapeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not np.all((q._data >= 0) & (q._data <= 1)):
        raise ShapeError(f"{name}() q values must be in the range [0, 1]")
    return q
