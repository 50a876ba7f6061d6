"""Elements named by an index along one dim: gather, scatter and their kin.

NOTE [Places of gather and scatter]
For an index of shape (I₀, I₁, …) and dim d the element (i₀, i₁, …) of the index names the place (i₀, …, index[i], …) of
the input: the index replaces the d-th coordinate. `places` writes that as NumPy's index arrays, `flat_places` as
positions counted row by row.
"""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.sparse_array import SparseArray
from backlight.ops.dims import normalise_dim
from backlight.ops.indexing.index_selection import INDEX_KINDS, check_range, check_same_dtype, owned
from backlight.ops.number_operands import require_no_bools, require_real
from backlight.ops.scalars import element
from backlight.ops.shape.expanding import expand
from backlight.ops.shape.reshaping import reshape
from backlight.sizes import Shape, broadcast
from backlight.system.user_warnings import warn_once

__all__ = ["gather", "index_reduce", "scatter", "scatter_add", "scatter_reduce", "take_along_dim"]

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def places(index: Array, dim: int) -> tuple:
    """Return index arrays for NumPy (NOTE [Places of gather and scatter])."""
    ndim = index.ndim
    return tuple(
        index if d == dim else np.arange(size).reshape((1,) * d + (size,) + (1,) * (ndim - d - 1))
        for d, size in enumerate(index.shape)
    )


def flat_places(index: Array, dim: int, shape: Sequence[int]) -> np.ndarray:
    """Return positions in an array of `shape`, counted row by row (NOTE [Places of gather and scatter])."""
    total, step = 0, 1
    for d in reversed(range(len(shape))):
        total = total + places_along(index, d, dim) * step
        step *= shape[d]
    return np.broadcast_to(total, index.shape)


def places_along(index: Array, d: int, dim: int):
    """Return one of the arrays of `places`."""
    if d == dim:
        return index.astype(np.int64)
    return np.arange(index.shape[d]).reshape((1,) * d + (-1,) + (1,) * (index.ndim - d - 1))


def _checked(name: str, input: Array, dim: int, index: Array, source: Array | None = None) -> int:
    """Return the dim counted from the start, or raise PyTorch's error for an index or a source that does not fit."""
    dim = normalise_dim(dim, input.ndim)
    if index.size == 0:
        return dim
    if index.dtype not in INDEX_KINDS:
        raise ShapeError(f"{name}(): Expected dtype int32/int64 for index; convert it with .long()")
    shape, wanted = input.shape or (1,), index.shape or (1,)
    if len(shape) != len(wanted):
        called = "input" if name == "gather" else "self"
        raise ShapeError(
            f"Index tensor must have the same number of dimensions as {called} tensor; got "
            f"{index.ndim} for the index and {input.ndim} for the input"
        )
    larger = [d for d in range(len(shape)) if d != dim and wanted[d] > shape[d]]
    if larger and source is None:
        raise ShapeError(
            f"Size does not match at dimension {larger[0]} expected index {list(wanted)} to be no larger than self "
            f"{list(shape)} apart from dimension {dim}"
        )
    if source is not None:
        from_shape = source.shape or (1,)
        if len(from_shape) != len(wanted):
            raise ShapeError("Index tensor must have the same number of dimensions as src tensor")
        if larger or any(size > present for size, present in zip(wanted, from_shape)):
            raise ShapeError(
                f"Expected index {list(wanted)} to be no larger than self {list(shape)} apart from dimension {dim} and "
                f"to be no larger size than src {list(from_shape)}"
            )
    message = f"index {{index}} is out of bounds for dimension {dim} with size {{size}}"
    check_range(index, shape[dim], message, ShapeError)
    return dim


def corner(source: Array, shape: Sequence[int]):
    """Return the part of `source` that an index of this shape reads."""
    if source.shape == shape:
        return source
    if not source.ndim or not shape:  # of one element
        return source.reshape(-1)[:1].reshape(shape)
    return source[tuple(slice(size) for size in shape)]


@op(tangent="linear", complex="linear", layout="rows")
def gather(xp, input: Array, dim: int, index: Array, *, sparse_grad: bool = False):
    """The elements that an index along `dim` names, in the shape of the index."""
    index = owned(index)
    dim = _checked("gather", input, dim, index)
    if not index.size:
        return xp.empty(index.shape, input.dtype)
    if not input.ndim or not index.ndim:
        return input.reshape(-1)[index]
    return input[places(index, dim)]


@gather.derivative("input", formula="grad, added at the places read")
def gather_input(grad: Array, dim: int, index: Array, input_shape: Shape, sparse_grad: bool, ops):
    if sparse_grad:
        return ops.gather_sparse_backward(grad, index, dim, input_shape)
    return ops.scatter_add(ops.new_zeros(grad, input_shape), dim, index, grad)


@op(node="SparseCooTensorWithDimsAndTensorsBackward0", tangent="linear")
def gather_sparse_backward(xp, grad_output: Array, index: Array, dim: int, shape: tuple):
    """Return a sparse tensor with each gradient as an entry at the place read."""
    index = owned(index)
    if not len(shape) or not index.ndim:
        return SparseArray(xp.zeros((len(shape), 1), xp.int64), grad_output.reshape(1), tuple(shape))
    found = [xp.broadcast_to(one, index.shape).reshape(-1) for one in places(index, dim % len(shape))]
    return SparseArray(xp.stack(found).astype(xp.int64), grad_output.reshape(-1), tuple(shape))


gather_sparse_backward.derivative("grad_output", formula="grad at the places read")(
    lambda grad, index, dim, ops: ops.gather(ops.sparse_to_dense(grad), dim, index)
)


@op(tangent="linear", complex="linear", layout="rows")
def scatter_add(xp, input: Array, dim: int, index: Array, src: Array):
    """`input` with elements of `src` added at the places that an index along `dim` names."""
    dim = _checked("scatter_add", input, dim, index, src)
    check_same_dtype("scatter(): Expected self.dtype to be equal to src.dtype; got {0} and {1}", input, src)
    out = xp.array(input, order="C")
    if index.size:
        values = corner(src, index.shape).reshape(-1)
        xp.add.at(out.reshape(-1), flat_places(index, dim, input.shape or index.shape).reshape(-1), values)
    return out


scatter_add.derivative("input", formula="grad")(lambda grad: grad)
scatter_add.derivative("src", formula="grad at the places")(
    lambda grad, dim, index, src_shape, ops: ops.gathered_as(grad, dim, index, src_shape)
)


@op(node="GatherBackward0", tangent="linear", complex="linear")
def gathered_as(xp, input: Array, dim: int, index: Array, shape: tuple):
    """What `gather` gives, with zeros around it up to `shape`: the gradient of a source that was read in part."""
    dim = _checked("gather", input, dim, index)
    if index.shape == tuple(shape):
        return gather.op.forward(xp, input, dim, index)
    out = xp.zeros(shape, input.dtype)
    out[tuple(slice(size) for size in index.shape)] = gather.op.forward(xp, input, dim, index)
    return out


gathered_as.derivative("input", formula="grad, added at the places read")(
    lambda grad, dim, index, input_shape, ops: ops.scatter_add(ops.new_zeros(grad, input_shape), dim, index, grad)
)


@op(node="ScatterBackward0", tangent="linear", complex="linear", layout="rows")
def scatter_tensor(xp, input: Array, dim: int, index: Array, src: Array):
    """`input` with the elements at the places that an index along `dim` names replaced by those of `src`."""
    index = owned(index)
    dim = _checked("scatter", input, dim, index, src)
    check_same_dtype("scatter(): Expected self.dtype to be equal to src.dtype; got {0} and {1}", input, src)
    return _written(xp, input, dim, index, corner(src, index.shape) if index.size else src)


scatter_tensor.derivative("input", formula="grad, 0 at the places replaced")(
    lambda grad, dim, index, ops: ops.scatter_number(grad, dim, index, 0)
)
scatter_tensor.derivative("src", formula="grad at the places")(
    lambda grad, dim, index, src_shape, ops: ops.gathered_as(grad, dim, index, src_shape)
)


@op(node="ScatterBackward1", tangent="symmetric", complex="linear", layout="rows")
def scatter_number(xp, input: Array, dim: int, index: Array, value: float):
    """`input` with the elements at the places that an index along `dim` names replaced by a number."""
    index = owned(index)
    return _written(xp, input, _checked("scatter", input, dim, index), index, element(value, input.dtype))


scatter_number.derivative("input", formula="grad, 0 at the places replaced")(
    lambda grad, dim, index, ops: ops.scatter_number(grad, dim, index, 0)
)


def _written(xp, input: Array, dim: int, index: Array, values: Array):
    out = xp.array(input, order="C")
    if index.size:
        if not input.ndim or not index.ndim:
            out.reshape(-1)[index] = values
        else:
            out[places(index, dim)] = values
    return out


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """Write elements of `src`, or one number, to the places that an index along `dim` names.

    Args:
        index: the element (i, j, …) of `src` goes to the place (i, j, …) with the coordinate of `dim` replaced by
            `index[i, j, …]`.
        reduce: "add" or "multiply" what is written to what is there.

    Raises:
        RuntimeError: the index does not fit `input` or `src`, or lies outside `input`.
    """
    written = value if src is None else src
    if written is None:
        raise ArgumentError(
            "scatter() received an invalid combination of arguments - got (int, Tensor), but expected one of:\n"
            " * (int dim, Tensor index, Tensor src)\n * (int dim, Tensor index, Number value)"
        )
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise ShapeError(f"reduce argument must be either add or multiply., got {reduce!r}")
        if isinstance(written, TensorState):
            warn_once(
                "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
                stacklevel=4,
            )
        if not isinstance(written, TensorState):
            number = wrap(np.full((1,) * index._data.ndim, element(written, input._data.dtype)))
            written = expand(number, index._data.shape)
        if reduce == "add":
            return scatter_add(input, dim, index, written)
        return scatter_reduce(input, dim, index, written, "prod")
    if isinstance(written, TensorState):
        return scatter_tensor(input, dim, index, written)
    return scatter_number(input, dim, index, written)


@op(complex="holomorphic", layout="rows")
def scatter_reduce(xp, input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True):
    """`input` with elements of `src` reduced into the places that an index along `dim` names.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether what is there takes part in the reduction.
    """
    if reduce not in REDUCTIONS:
        raise ShapeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = _checked("scatter_reduce", input, dim, index, src)
    check_same_dtype("scatter(): Expected self.dtype to be equal to src.dtype; got {0} and {1}", input, src)
    if reduce in ("amax", "amin"):
        require_real(f"scatter_gather_tensor_cpu_reduce_{reduce}", input)
    if reduce == "mean":
        require_no_bools("scatter_gather_tensor_cpu_reduce_mean", input)
    out = xp.array(input, order="C")
    if not index.size:
        return out
    flat, values = out.reshape(-1), corner(src, index.shape).reshape(-1)
    where = flat_places(index, dim, input.shape or index.shape).reshape(-1)
    if not include_self:
        flat[where] = _neutral(reduce, out.dtype)
    if reduce == "mean":
        _mean_at(xp, flat, where, values, include_self)
    else:
        {"sum": xp.add, "prod": xp.multiply, "amax": xp.maximum, "amin": xp.minimum}[reduce].at(flat, where, values)
    return out


def _neutral(reduce: str, kind: np.dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if kind.kind == "b":
        return reduce == "amin"
    if kind.kind in "iu":
        return np.iinfo(kind).min if reduce == "amax" else np.iinfo(kind).max
    return -np.inf if reduce == "amax" else np.inf


def _mean_at(xp, flat: Array, where: Array, values: Array, include_self: bool) -> None:
    xp.add.at(flat, where, values)
    counts = xp.bincount(where, minlength=flat.size) + (1 if include_self else 0)
    counts = xp.maximum(counts, 1)
    if flat.dtype.kind in "iu":
        flat[...] = flat // counts
    else:
        flat[...] = (flat / counts.astype(flat.dtype)).astype(flat.dtype)


@scatter_reduce.derivative("input", "src", formula="by the kind of reduction: see scatter_reduce_gradients")
def scatter_reduce_gradients(
    grad: Array, input: Array, src: Array, out: Array, dim: int, index: Array, reduce: str, include_self: bool, ops
):
    """Return the gradients for the input and the source of `scatter_reduce`.

    sum: grad, and grad at the places. mean: the same over the count. amax, amin: shared equally by all that equal the
    result. prod: grad · result / factor, with a zero factor taken out of the product first.
    """
    if reduce == "sum":
        own, other = grad, ops.gathered_as(grad, dim, index, src.shape)
    elif reduce == "mean":
        share = grad / _mean_counts(grad, src, dim, index, include_self, ops)
        own, other = share, ops.gathered_as(share, dim, index, src.shape)
    elif reduce == "prod":
        own, other = _product_gradients(grad, input, src, out, dim, index, include_self, ops)
    else:
        own, other = _extreme_gradients(grad, input, src, out, dim, index, ops)
    return (own if include_self else ops.scatter_number(own, dim, index, 0)), other


def _mean_counts(grad: Array, src: Array, dim: int, index: Array, include_self: bool, ops):
    start = ops.new_zeros(grad, grad.shape) + (1 if include_self else 0)
    counts = ops.scatter_add(start, dim, index, ops.new_zeros(grad, src.shape) + 1)
    return ops.masked_fill(counts, counts == 0, 1)


def _extreme_gradients(grad: Array, input: Array, src: Array, out: Array, dim: int, index: Array, ops):
    zero, other_zero = ops.new_zeros(grad, grad.shape), ops.new_zeros(grad, src.shape)
    own_best = ops.masked_fill(zero, input == out, 1)
    other_best = ops.masked_fill(other_zero, src == ops.gathered_as(out, dim, index, src.shape), 1)
    count = ops.scatter_add(own_best, dim, index, other_best)
    share = grad / ops.masked_fill(count, count == 0, 1)
    return own_best * share, other_best * ops.gathered_as(share, dim, index, src.shape)


def _product_gradients(
    grad: Array, input: Array, src: Array, out: Array, dim: int, index: Array, include_self: bool, ops
):
    without_zero_inputs = ops.masked_fill(input, input == 0, 1)
    without_zeros = ops.scatter_reduce(without_zero_inputs, dim, index, src, "prod", include_self=include_self)
    own = grad * without_zeros / without_zero_inputs
    zero = src == 0
    zeros = ops.masked_fill(ops.new_zeros(grad, src.shape), zero, 1)
    zeros = ops.scatter_add(ops.new_zeros(grad, grad.shape), dim, index, zeros)
    single = zero & (ops.gathered_as(zeros, dim, index, src.shape) == 1)
    others = ops.masked_fill(src, single, 1)
    product = ops.scatter_reduce(input, dim, index, others, "prod", include_self=include_self)
    at_single_zero = ops.gathered_as(grad * product, dim, index, src.shape)
    elsewhere = ops.gathered_as(grad * out, dim, index, src.shape) / ops.masked_fill(src, zero, 1)
    return own, ops.masked_fill(at_single_zero, ~single, 0) + ops.masked_fill(elsewhere, single, 0)


def index_reduce(
    input: TensorState, dim: int, index: TensorState, source: TensorState, reduce: str, *, include_self: bool = True
):
    """Reduce slices of `source` into the slices that a vector of indices along `dim` names.

    Raises:
        RuntimeError: `reduce` is none of prod, mean, amax, amin.
    """
    warn_once("index_reduce() is in beta and the API may change at any time.", stacklevel=4)
    if reduce not in REDUCTIONS[1:]:
        raise ShapeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    require_no_bools("index_func_", source)
    require_real("index_func_", source)
    shape = source._data.shape
    if not shape:
        return scatter_reduce(input, dim, reshape(index, ()), source, reduce, include_self=include_self)
    dim = normalise_dim(dim, len(shape))
    spread = expand(reshape(index, (1,) * dim + (-1,) + (1,) * (len(shape) - dim - 1)), shape)
    return scatter_reduce(input, dim, spread, source, reduce, include_self=include_self)


def take_along_dim(input: TensorState, indices: TensorState, dim: int | None = None):
    """Return the elements that indices along `dim` name, other dims broadcast; without `dim`, of the flattened input.

    Raises:
        RuntimeError: the dims do not agree.
    """
    if dim is not None and input._data.ndim != indices._data.ndim:
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._data.ndim} dimensions for input, and {indices._data.ndim} dimensions for indices"
        )
    if indices._data.dtype not in INDEX_KINDS:
        kind = from_numpy_dtype(indices._data.dtype).old_name
        raise ShapeError(f"torch.take_along_dim(): dtype of indices should be Long but got {kind}")
    if dim is None:
        return gather(reshape(input, -1), 0, reshape(indices, -1))
    dim = normalise_dim(dim, input._data.ndim)
    shape, wanted = input._data.shape, indices._data.shape
    indices = counted_from_start(indices, shape[dim] if shape else 1)
    rest = broadcast(shape[:dim] + (1,) + shape[dim + 1 :], wanted[:dim] + (1,) + wanted[dim + 1 :])
    input = expand(input, rest[:dim] + shape[dim : dim + 1] + rest[dim + 1 :])
    return gather(input, dim, expand(indices, rest[:dim] + wanted[dim : dim + 1] + rest[dim + 1 :]))


@composite_function
def counted_from_start(indices: TensorState, size: int):
    """Return indices with negative ones counted from the start."""
    data = indices._data
    return wrap(np.where(data < 0, data + size, data)) if data.size and data.min() < 0 else indices
