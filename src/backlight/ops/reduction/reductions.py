"""Reductions that add, multiply or count: sums, means, products, all, any, logsumexp."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import dtype, from_numpy_dtype, to_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ShapeError
from backlight.kernels.elementwise.binary import summed
from backlight.kernels.half_precision import rounded, widened
from backlight.ops.dims import NUMPY_NAMES, kept_shape, normalise_dim, reduced_count, reduced_dims, with_numpy_names
from backlight.ops.number_operands import require_kernel
from backlight.ops.type_promotion import BOOL, FLOAT32, INT64, has_gradient, is_float
from backlight.sizes import Shape

__all__ = ["all", "any", "count_nonzero", "logsumexp", "mean", "nanmean", "nansum", "prod", "sum"]

WIDE_SIZE = 16384  # from here on, a repeated value is a view of stride 0, not an array filled with it


def add_up(xp, input: Array, dims: Sequence[int] | None = None, keepdim: bool = False):
    """Sum an array as PyTorch does: integers and bool in int64, half precision in float32, cast back."""
    kind = input.dtype
    if kind.char in "fdlFD":
        return summed(input, dims, keepdim)
    if not is_float(kind):
        return xp.add.reduce(input, dims, INT64, None, keepdim)
    return xp.add.reduce(input, dims, FLOAT32, None, keepdim).astype(kind)


def in_dtype(input: TensorState, dtype: dtype | None):
    """Return a tensor in the requested dtype, if there is one."""
    return input if dtype is None or input.dtype == dtype else input.to(dtype)


def computed_in(kernel: str, dtype: dtype | None, compute: Callable, input: TensorState, *options):
    """Return compute(input, …) on the input in a dtype, in that dtype: of integers it is computed in int64."""
    if dtype is not None:
        require_kernel(kernel, to_numpy_dtype(dtype))
    return in_dtype(compute(in_dtype(input, dtype), *options), dtype)


def with_numpy_options(numpy_options: dict, dim: int | Sequence[int] | None, keepdim: bool) -> tuple:
    """Return (dim, keepdim) where a caller may have passed `axis` or `keepdims` instead."""
    unknown = numpy_options.keys() - NUMPY_NAMES.keys()
    if unknown:
        raise TypeError(
            f"sum() got an unexpected keyword argument '{min(unknown)}'"
        )  # checked.py makes PyTorch's of it
    return numpy_options.get("axis", dim), numpy_options.get("keepdims", keepdim)


@op(node="ExpandBackward0", tangent="linear", complex="linear")
def spread(xp, input: Array, size: tuple, dims: tuple | None = None):
    """Undo a reduction's loss of shape: repeat a reduced value over `dims` (all of them for None) up to `size`."""
    kept = input if dims is None else input.reshape(kept_shape(size, dims))
    full = xp.empty(size, input.dtype)
    if full.size > WIDE_SIZE and kept.size < full.size:
        return xp.broadcast_to(kept, size)
    full[...] = kept
    return full


spread.derivative("input", formula="grad, summed over dims")(
    lambda grad, input_shape, size, dims, ops: ops.sum(grad, dims, len(input_shape) == len(size))
)


@op(node="SumBackward0", tangent="linear", complex="linear")
def sum_all(xp, input: Array):
    """The sum of all elements."""
    return summed(input, None, False) if input.dtype.char in "fd" else add_up(xp, input)


sum_all.derivative("input", formula="grad, repeated over the shape of input")(
    lambda grad, input_shape, ops: ops.spread(grad, input_shape)
)


@op(name="sum", node="SumBackward1", tangent="linear", complex="linear", layout="rows")
def sum_dims(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """The sum over `dim`."""
    return add_up(xp, input, reduced_dims(dim, input.ndim), keepdim)


sum_dims.derivative("input", formula="grad, repeated over dim")(
    lambda grad, input_shape, dim, ops: ops.spread(grad, input_shape, reduced_dims(dim, len(input_shape)))
)


def sum(
    input: TensorState, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype=None, **numpy_options
):
    """Add the elements, all of them or over `dim` (an int or several).

    Args:
        dim: what to sum over; all dims for None.
        keepdim: leave the summed dims in place, with size 1.
        dtype: convert to this dtype first; integers and bool are summed in int64 without it.
    """
    if numpy_options:
        dim, keepdim = with_numpy_options(numpy_options, dim, keepdim)
    all_dims = dim is None and not keepdim
    if dtype is not None:
        options = (sum_all, input) if all_dims else (sum_dims, input, dim, keepdim)
        return computed_in("sum_cpu", dtype, *options)
    return sum_all(input) if all_dims else sum_dims(input, dim, keepdim)


@op(name="nansum", layout="rows")
def nansum_dims(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """The sum over `dim`, NaN counted as 0."""
    present = xp.where(xp.isnan(input), input.dtype.type(0), input) if is_float(input.dtype) else input
    return add_up(xp, present, reduced_dims(dim, input.ndim), keepdim)


nansum_dims.derivative("input", formula="grad, repeated over dim; 0 where input is NaN")(
    lambda grad, input, dim, ops: ops.spread(grad, input.shape, reduced_dims(dim, input.ndim)) * (input == input)
)
nansum_dims.tangent("input")(
    lambda tangent, input, dim, keepdim, ops: ops.sum(ops.kept(tangent, ~ops.isnan(input)), dim, keepdim)
)


@with_numpy_names
def nansum(
    input: TensorState, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
):
    """Add the elements, all of them or over `dim`, counting NaN as 0."""
    return computed_in("sum_cpu", dtype, nansum_dims, input, dim, keepdim)


def check_mean(kind: np.dtype, what: str = "Input", name: str = "mean") -> None:
    """Raise PyTorch's error for a mean of integers."""
    if not has_gradient(kind):
        raise ShapeError(
            f"{name}(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. "
            f"Got: {from_numpy_dtype(kind).old_name}\n  Convert it first (.float()), or pass dtype=torch.float32"
        )


def average(xp, input: Array, dims: Sequence[int] | None = None, keepdim: bool = False):
    """Average an array, half precision in float32."""
    check_mean(input.dtype)
    total = summed(widened(input), dims, keepdim)
    return rounded(xp.divide(total, reduced_count(input.shape, dims)), input.dtype)


@op(node="MeanBackward0", tangent="linear", complex="linear")
def mean_all(xp, input: Array):
    """The mean of all elements."""
    return summed(input, None, False) / input.size if input.dtype.char in "fdFD" and input.size else average(xp, input)


mean_all.derivative("input", formula="grad / n, repeated over the shape of input")(
    lambda grad, input_shape, ops: ops.spread(grad / math.prod(input_shape), input_shape)
)


@op(name="mean", node="MeanBackward1", tangent="linear", complex="linear", layout="rows")
def mean_dims(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """The mean over `dim`."""
    return average(xp, input, reduced_dims(dim, input.ndim), keepdim)


@mean_dims.derivative("input", formula="grad / n, repeated over dim")
def mean_dims_input(grad: Array, input_shape: Shape, dim: tuple | None, ops):
    return ops.spread(grad / reduced_count(input_shape, dim), input_shape, reduced_dims(dim, len(input_shape)))


def mean(
    input: TensorState, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype=None, **numpy_options
):
    """Average the elements, all of them or over `dim` (an int or several); `dtype` converts them first."""
    if numpy_options:
        dim, keepdim = with_numpy_options(numpy_options, dim, keepdim)
    if dtype is not None:
        check_mean(dtype.numpy, "Optional")
        input = in_dtype(input, dtype)
    return mean_all(input) if dim is None and not keepdim else mean_dims(input, dim, keepdim)


@with_numpy_names
def nanmean(
    input: TensorState, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None
):
    """Average the elements that are not NaN, all of them or over `dim`."""
    if not (input.is_floating_point() or input.is_complex()):
        raise ShapeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.old_name}\n  Convert it first (.float()): integers have no NaN"
        )
    if dtype is not None:
        check_mean(dtype.numpy, "Optional", "nanmean")
    present = sum(input.detach() == input.detach(), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / present


def multiply_up(xp, input: Array, dims: int | None, keepdim: bool = False):
    """Multiply an array's elements: integers and bool in int64, half precision in float32, cast back."""
    if not has_gradient(input.dtype):
        return xp.multiply.reduce(input, dims, INT64, None, keepdim)
    return rounded(xp.multiply.reduce(widened(input), dims, None, None, keepdim), input.dtype)


def has_zero(values: Array) -> bool:
    """Tell whether an array or a tensor holds a 0: then a product cannot be divided by its factors."""
    return bool((values == 0).any())


def products_of_others(input: Array, dim: int, ops):
    """Return for each element the product of all others along `dim`, without a division.

    out_k = ∏_{j<k} input_j · ∏_{j>k} input_j
    """
    before = ops.cumprod(ops.shift(input, dim, 1, 1.0), dim)
    turned = ops.flip(input, (dim,))
    after = ops.flip(ops.cumprod(ops.shift(turned, dim, 1, 1.0), dim), (dim,))
    return before * after


@op(node="ProdBackward0", complex="holomorphic")
def prod_all(xp, input: Array):
    """The product of all elements."""
    return multiply_up(xp, input, None)


@prod_all.derivative("input", formula="grad · ∏ of the other elements (= grad · out / input where no element is 0)")
def prod_all_input(grad: Array, input: Array, out: Array, ops):
    if has_zero(input):
        return (grad * products_of_others(input.reshape((-1,)), 0, ops)).reshape(input.shape)
    return grad * out / input


@op(name="prod", node="ProdBackward1", complex="holomorphic", layout="rows")
def prod_dim(xp, input: Array, dim: int, keepdim: bool = False):
    """The product over `dim`."""
    dim = normalise_dim(dim, input.ndim)
    return multiply_up(xp, input, dim if input.ndim else (), keepdim)


@prod_dim.derivative("input", formula="grad · ∏ of the other elements along dim")
def prod_dim_input(grad: Array, input: Array, out: Array, dim: int, ops):
    if input.ndim == 0:
        return grad
    kept = kept_shape(input.shape, dim)
    if has_zero(input):
        return grad.reshape(kept) * products_of_others(input, dim, ops)
    return (grad * out).reshape(kept) / input


@public_function
@with_numpy_names
def prod(input: TensorState, dim: int | None = None, keepdim: bool = False, *, dtype: dtype | None = None):
    """Multiply the elements, all of them or over one `dim`; integers and bool in int64."""
    if dim is None:
        return computed_in("prod_out_cpu", dtype, prod_all, input)
    return computed_in("prod_out_cpu", dtype, prod_dim, input, dim, keepdim)


def truth(reduce: Callable, input: Array, dim: int | Sequence[int] | None, keepdim: bool):
    """Reduce to bool, over no dims at all for an empty sequence; uint8, PyTorch's old bool, stays uint8."""
    none = dim is not None and not isinstance(dim, (int, np.integer)) and len(dim) == 0
    found = input != 0 if none else reduce(input, reduced_dims(dim, input.ndim), BOOL, None, keepdim)
    return found.astype(np.uint8) if input.dtype == np.uint8 else found


@op(name="all", complex="own", layout="rows")
def all_true(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """Tell whether no element is 0, of all elements or over `dim`."""
    return truth(xp.logical_and.reduce, input, dim, keepdim)


@op(name="any", complex="own", layout="rows")
def any_true(xp, input: Array, dim: tuple | None = None, keepdim: bool = False):
    """Tell whether some element is not 0, of all elements or over `dim`."""
    return truth(xp.logical_or.reduce, input, dim, keepdim)


all = with_numpy_names(all_true)
any = with_numpy_names(any_true)


@op(complex="own", layout="rows")
def count_nonzero(xp, input: Array, dim: tuple | None = None):
    """Count the elements that are not 0, all of them or over `dim`."""
    return xp.add.reduce(input != 0, reduced_dims(dim, input.ndim), INT64)


@op(name="logsumexp", promote="float", complex="holomorphic", layout="rows")
def logsumexp_dims(xp, input: Array, dim: tuple, keepdim: bool = False):
    """The logarithm of the sum of exponentials over `dim`, safe for large values."""
    dims = reduced_dims(dim, input.ndim)
    values = widened(input)
    largest = xp.maximum.reduce(values.real, dims, None, None, True, -np.inf)
    largest = xp.where(xp.isinf(largest), largest.dtype.type(0), largest)
    out = xp.log(xp.add.reduce(xp.exp(values - largest), dims, None, None, True)) + largest
    return rounded(out if keepdim else xp.squeeze(out, dims), input.dtype)


@logsumexp_dims.derivative("input", formula="grad · exp(input − out)")
def logsumexp_input(grad: Array, input: Array, out: Array, dim: tuple, ops):
    kept = kept_shape(input.shape, dim)
    return grad.reshape(kept) * ops.exp(input - out.reshape(kept))


@logsumexp_dims.tangent("input")
def logsumexp_tangent(tangent: Array, input: Array, out: Array, dim: tuple, keepdim: bool, ops):
    return ops.sum(tangent * ops.exp(input - out.reshape(kept_shape(input.shape, dim))), dim, keepdim)


@with_numpy_names
def logsumexp(input: TensorState, dim: int | Sequence[int], keepdim: bool = False):
    """Return log Σ exp(input) over `dim` (an int or several), safe for large values."""
    return logsumexp_dims(input, dim, keepdim)
