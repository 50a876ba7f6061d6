"""Scans: running sums, products and extremes along a dim, and differences of neighbours."""

from collections.abc import Callable

import numpy as np
from ml_dtypes import finfo

from backlight import return_types
from backlight.codegen.declaration import Array, op
from backlight.dtypes import bool as bool_dtype
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.nn.pooling import added_at
from backlight.kernels.reduction import slices
from backlight.ops.dims import flat_places, normalise_dim, with_numpy_names
from backlight.ops.number_operands import no_integers, no_kernel
from backlight.ops.reduction.extremes import SELECTED, ordered_tangent
from backlight.ops.reduction.reductions import computed_in, has_zero
from backlight.ops.shape.joining import cat
from backlight.ops.type_promotion import INT64, has_gradient

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diff",
    "logcumsumexp",
    "trapezoid",
    "trapz",
]


def in_rows(values: Array) -> np.ndarray:
    """Return an array of at least one dim whose elements lie row by row."""
    return np.ascontiguousarray(values) if isinstance(values, np.ndarray) else np.asarray(values).reshape(1)


def scan(accumulate: Callable, input: Array, dim: int, reverse: bool = False):
    """Run `accumulate(values, dim, reverse)` along `dim`: integers in int64, half precision in float32.

    The result lies row by row, whatever the order of the input.
    """
    dim = normalise_dim(dim, input.ndim)
    values = widened(input) if has_gradient(input.dtype) else input.astype(INT64)
    out = accumulate(in_rows(values), dim, reverse).reshape(input.shape)
    return rounded(out, input.dtype) if has_gradient(input.dtype) else out


@op(name="cumsum", tangent="linear", complex="linear", layout="rows")
def running_sum(xp, input: Array, dim: int):
    """Running sums along `dim`."""
    return scan(slices.running_sum, input, dim)


running_sum.derivative("input", formula="Σ_{i≥k} grad_i")(lambda grad, dim, ops: ops.reverse_cumsum(grad, dim))


@op(node="FlipBackward0", tangent="linear", complex="linear")
def reverse_cumsum(xp, input: Array, dim: int):
    """Running sums along `dim` from the end: the derivative of cumsum."""
    return scan(slices.running_sum, input, dim, True)


reverse_cumsum.derivative("input", formula="Σ_{i≤k} grad_i")(lambda grad, dim, ops: ops.cumsum(grad, dim))


@with_numpy_names
def cumsum(input: TensorState, dim: int, *, dtype: dtype | None = None):
    """Return running sums along `dim`; integers and bool are summed in int64 unless `dtype` says otherwise."""
    _check_scanned("cumsum", dtype)
    return computed_in("cumsum_out_cpu", dtype, running_sum, input, dim)


@op(tangent="linear", tangent_with={"fill": 0.0}, complex="linear")
def shift(xp, input: Array, dim: int, by: int, fill: float = 0.0):
    """Move the elements `by` places along `dim`; what falls off the end is lost, the gap is filled."""
    if input.ndim == 0:
        return xp.full_like(input, fill)
    out = xp.full_like(input, fill)
    length = input.shape[dim]
    to = (slice(None),) * (dim % input.ndim)
    out[(*to, slice(max(by, 0), length + min(by, 0)))] = input[(*to, slice(max(-by, 0), length - max(by, 0)))]
    return out


shift.derivative("input", formula="grad, moved back")(lambda grad, dim, by, ops: ops.shift(grad, dim, -by))


@op(complex="holomorphic")
def linear_recurrence(xp, factors: Array, terms: Array, *, dim: int, reverse: bool = False):
    """Solve out_k = terms_k + factors_k · out_{k−1} (out_{k+1} with `reverse`) along `dim`.

    Two steps are again a step of that form, so that log₂ n passes over whole arrays are enough.
    """
    order = (slice(None, None, -1),) if reverse else (slice(None),)
    factors = xp.array(xp.moveaxis(factors, dim, 0)[order])
    out = xp.array(xp.moveaxis(terms, dim, 0)[order])
    step = 1
    while step < len(out):
        out[step:] += factors[step:] * out[:-step]
        factors[step:] = factors[step:] * factors[:-step]
        step *= 2
    return xp.moveaxis(out[order], 0, dim)


def adjoint(grad: Array, factors: Array, dim: int, reverse: bool, ops):
    """Return λ_k = grad_k + factors_{k+1} · λ_{k+1}, the gradient of a recurrence's terms: it runs the other way."""
    return ops.linear_recurrence(ops.shift(factors, dim, 1 if reverse else -1), grad, dim=dim, reverse=not reverse)


@linear_recurrence.derivative("factors", formula="λ_k · out_{k−1}, with λ_k = grad_k + factors_{k+1} · λ_{k+1}")
def linear_recurrence_factors(grad: Array, factors: Array, out: Array, dim: int, reverse: bool, ops):
    return adjoint(grad, factors, dim, reverse, ops) * ops.shift(out, dim, -1 if reverse else 1)


linear_recurrence.derivative("terms", formula="λ_k = grad_k + factors_{k+1} · λ_{k+1}")(
    lambda grad, factors, dim, reverse, ops: adjoint(grad, factors, dim, reverse, ops)
)


@op(name="cumprod", complex="holomorphic", layout="rows")
def running_product(xp, input: Array, dim: int):
    """Running products along `dim`."""
    return scan(slices.running_product, input, dim)


@running_product.derivative("input", formula="Σ_{i≥k} grad_i · ∏_{j≤i, j≠k} input_j")
def running_product_input(grad: Array, input: Array, out: Array, dim: int, ops):
    if input.ndim == 0:
        return grad
    if has_zero(input):
        return adjoint(grad, input, dim, False, ops) * ops.shift(out, dim, 1, 1.0)
    return ops.reverse_cumsum(grad * out, dim) / input


@with_numpy_names
def cumprod(input: TensorState, dim: int, *, dtype: dtype | None = None):
    """Return running products along `dim`; integers and bool are multiplied in int64 unless `dtype` says otherwise."""
    _check_scanned("cumprod", dtype)
    return computed_in("cumprod_out_cpu", dtype, running_product, input, dim)


def _check_scanned(name: str, dtype: dtype | None) -> None:
    if dtype is bool_dtype:
        raise no_kernel(f"{name}_out_cpu", dtype.numpy, "scan in integers, and compare")


@op(name="logcumsumexp", promote="float", dtype_error=no_integers("logcumsumexp_out_cpu"), layout="rows")
def running_logsumexp(xp, input: Array, dim: int):
    """Running log Σ exp along `dim`."""
    return scan(lambda values, dim, _: xp.logaddexp.accumulate(values, dim), input, dim)


@running_logsumexp.derivative(
    "input", formula="λ_k · exp(input_k − out_k), with λ_k = grad_k + exp(out_k − out_{k+1}) · λ_{k+1}"
)
def running_logsumexp_input(grad: Array, input: Array, out: Array, dim: int, ops):
    if input.ndim == 0:
        return grad
    reached = ops.clamp_to_numbers(out, lowest(out.dtype), None)  # finite: -inf − -inf would be NaN
    steps = ops.exp(reached - ops.shift(reached, dim, -1, np.inf))
    return ops.exp(input - reached) * ops.linear_recurrence(steps, grad, dim=dim, reverse=True)


def lowest(kind: np.dtype) -> float:
    """Return the smallest finite number of a floating point dtype, NumPy's or backlight's."""
    return float(finfo(getattr(kind, "numpy", kind)).min)


@with_numpy_names
def logcumsumexp(input: TensorState, dim: int):
    """Return running log Σ exp(input) along `dim`, safe for large values."""
    return running_logsumexp(input, dim)


def running_extreme(input: Array, dim: int, largest: bool):
    """Return running extremes along `dim`, and where each was found: the latest place among equals."""
    values, indices = slices.running_extreme(in_rows(input), normalise_dim(dim, input.ndim), largest)
    return values.reshape(input.shape), indices.reshape(input.shape)


@op(name="cummax", returns=return_types.cummax, **SELECTED, layout="rows")
def running_max(xp, input: Array, dim: int):
    """Running maxima along `dim`."""
    values, indices = running_extreme(input, dim, True)
    return (values, indices), xp.array(indices)


running_max.tangent("input")(ordered_tangent)
running_max.derivative("input", formula="Σ grad_i over the i whose extreme is this element")(
    lambda grad, dim, indices, ops: ops.cummaxmin_backward(grad, indices, dim)
)


@op(name="cummin", returns=return_types.cummin, **SELECTED, layout="rows")
def running_min(xp, input: Array, dim: int):
    """Running minima along `dim`."""
    values, indices = running_extreme(input, dim, False)
    return (values, indices), xp.array(indices)


running_min.tangent("input")(ordered_tangent)
running_min.derivative("input", formula="Σ grad_i over the i whose extreme is this element")(
    lambda grad, dim, indices, ops: ops.cummaxmin_backward(grad, indices, dim)
)


@op(node="ScatterAddBackward0", tangent="linear")
def cummaxmin_backward(xp, grad_output: Array, indices: Array, dim: int):
    """Add each gradient at the place where its running extreme was found."""
    if grad_output.ndim == 0:
        return grad_output
    places = flat_places(indices, grad_output.shape, dim % grad_output.ndim)
    return added_at(grad_output, places.reshape(grad_output.shape), grad_output.shape)


cummaxmin_backward.derivative("grad_output", formula="grad, taken where the extremes were found")(
    lambda grad, indices, dim, ops: ops.gather(grad, dim, indices)
)


@with_numpy_names
def cummax(input: TensorState, dim: int):
    """Return running maxima along `dim` and where each was found, as (values, indices)."""
    return running_max(input, dim)


@with_numpy_names
def cummin(input: TensorState, dim: int):
    """Return running minima along `dim` and where each was found, as (values, indices)."""
    return running_min(input, dim)


@with_numpy_names
def _check_end(input: TensorState, end: TensorState, dim: int) -> None:
    """Raise PyTorch's error for a tensor that cannot be put before or after the input of `diff`."""
    if end.ndim != input.ndim:
        raise ShapeError("diff expects prepend or append to be the same dimension as input")
    for at, (size, own) in enumerate(zip(end.shape, input.shape)):
        if at != dim and size != own:
            raise ShapeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({at}) = {own}, but got tensor.size({at}) = {size}"
            )


def diff(
    input: TensorState, n: int = 1, dim: int = -1, prepend: TensorState | None = None, append: TensorState | None = None
):
    """Return the n-th differences of neighbours along `dim`; `prepend` and `append` are put at the ends first."""
    if input.ndim == 0:
        raise ShapeError("diff expects input to be at least one-dimensional\n  Give it a dim: x.reshape(-1)")
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    if n == 0:
        return input.clone()
    dim = normalise_dim(dim, input.ndim)
    for end in (prepend, append):
        if end is not None:
            _check_end(input, end, dim)
    ends = [end for end in (prepend, input, append) if end is not None]
    values = cat(ends, dim) if len(ends) > 1 else input
    for _ in range(min(n, values.shape[dim])):
        length = values.shape[dim]
        left, right = values.narrow(dim, 0, length - 1), values.narrow(dim, 1, length - 1)
        values = right ^ left if values.dtype is bool_dtype else right - left
    return values


def _checked_samples(name: str, y: TensorState, x: TensorState | None) -> None:
    """Raise PyTorch's error for values or points that are bools."""
    for which, samples in (("y", y), ("x", x)):
        if samples is not None and samples.dtype is bool_dtype:
            raise ShapeError(
                f"{name}: received a bool input for `{which}`, but bool is not supported\n  Convert it with .float()"
            )


def _panels(y: TensorState, x: TensorState, dim: int):
    """Return twice the area between neighbours along `dim`, for points `x` or steps of 1."""
    length = y.shape[dim]
    panels = max(length - 1, 0)
    sums = y.narrow(dim, 0, panels) + y.narrow(dim, length - panels, panels)
    if x is None:
        return sums
    if x.ndim == 1:
        if x.shape[0] != length:
            raise ShapeError(
                "trapezoid: There must be one `x` value for each sample point\n"
                f"  y has {length} points along dim {dim}, x has {x.shape[0]} values"
            )
        x = x.reshape((-1,) + (1,) * (y.ndim - 1 - dim))
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return sums * diff(x, dim=dim - y.ndim)


def trapezoid(y: TensorState, x: TensorState | None = None, *, dx: float | None = None, dim: int = -1):
    """Return the area under `y` along `dim` by the trapezoidal rule, at the points `x` or at steps of `dx` (1).

    Raises:
        RuntimeError: `y` or `x` holds bools, or there are not as many points as values.
    """
    _checked_samples("trapezoid", y, x)
    dim = normalise_dim(dim, y.ndim)
    if not y.shape[dim]:
        return y.new_zeros(y.shape[:dim] + y.shape[dim + 1 :])
    if x is not None:
        return _panels(y, x, dim).sum(dim) / 2
    ends = y.select(dim, 0) + y.select(dim, -1)
    return (y.sum(dim) - ends * 0.5) * (1 if dx is None else dx)


def trapz(y: TensorState, x: TensorState | None = None, *, dx: float | None = None, dim: int = -1):
    """Return the area under `y` along `dim`: the old name of `trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: TensorState, x: TensorState | None = None, *, dx: float | None = None, dim: int = -1):
    """Return the running area under `y` along `dim` by the trapezoidal rule."""
    _checked_samples("cumulative_trapezoid", y, x)
    panels = _panels(y, x, normalise_dim(dim, y.ndim))
    return ((panels if dx is None else panels * dx) / 2).cumsum(dim)
