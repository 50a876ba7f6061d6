"""Elements picked by a mask, and the places where a tensor is not zero."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import sum_to_shape
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.ops.indexing.index_selection import check_same_dtype, owned
from backlight.ops.number_operands import require_kernel
from backlight.ops.scalars import element
from backlight.sizes import Shape, broadcast

__all__ = ["argwhere", "masked_fill", "masked_scatter", "masked_select", "nonzero", "nonzero_static"]


def _check_mask(message: str, mask: Array) -> None:
    if mask.dtype.kind != "b":
        raise ShapeError(message + "; make it one with .bool() or a comparison")


@op(name="masked_fill", tangent="symmetric", complex="linear", layout="rows")
def masked_fill_number(xp, input: Array, mask: Array, value: float):
    """`input` with a number where the mask is true."""
    _check_fill(input, mask)
    return xp.where(mask, element(value, input.dtype), input)


@op(node="MaskedFillBackward1", tangent="linear", complex="linear", layout="rows")
def masked_fill_tensor(xp, input: Array, mask: Array, value: Array):
    """`input` with the value of a 0-d tensor where the mask is true."""
    _check_fill(input, mask)
    if value.ndim:
        raise ShapeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return xp.where(mask, element(value.item(), input.dtype), input)


@masked_fill_number.derivative("input", formula="grad, 0 where the mask is true")
@masked_fill_tensor.derivative("input", formula="grad, 0 where the mask is true")
def masked_fill_input(grad: Array, mask: Array, input_shape: Shape, ops):
    kept = ops.masked_fill(grad, mask, 0)
    return kept if grad.shape == input_shape else ops.sum_to_size(kept, input_shape)


masked_fill_tensor.derivative("value", formula="Σ grad where the mask is true")(
    lambda grad, mask, value_dtype, ops: ops.to_copy(ops.masked_fill(grad, ~mask, 0).sum(), value_dtype)
)


def _check_fill(input: Array, mask: Array) -> None:
    if mask.shape != input.shape:
        broadcast(mask.shape, input.shape)
    _check_mask(
        "masked_fill_ only supports boolean masks, but got mask with dtype " + from_numpy_dtype(mask.dtype).c_name, mask
    )


def masked_fill(input: TensorState, mask: TensorState, value: TensorState | float):
    """Fill with one value, a number or a 0-d tensor, where the mask is true; input and mask broadcast."""
    if isinstance(value, TensorState):
        return masked_fill_tensor(input, mask, value)
    return masked_fill_number(input, mask, value)


@op(tangent="linear", complex="linear")
def masked_select(xp, input: Array, mask: Array):
    """The elements where the mask is true, in one dim, row by row; input and mask broadcast."""
    _check_mask("masked_select: expected BoolTensor for mask", mask)
    mask = owned(mask)
    if input.shape == mask.shape:
        return input[mask] if input.ndim else input.reshape(1)[mask.reshape(1)]
    shape = broadcast(mask.shape, input.shape)
    return xp.broadcast_to(input, shape)[xp.broadcast_to(mask, shape)]


masked_select.derivative("input", formula="grad at the places selected, 0 elsewhere")(
    lambda grad, mask, input_shape, ops: ops.masked_unselect(grad, mask, input_shape)
)


@op(node="MaskedScatterBackward0", tangent="linear", complex="linear")
def masked_unselect(xp, input: Array, mask: Array, shape: tuple):
    """Zeros of `shape` with the elements of `input` added where `masked_select` found them."""
    shape_of_both = broadcast(tuple(shape), mask.shape)
    out = xp.zeros(shape_of_both, input.dtype)
    out[xp.broadcast_to(owned(mask), shape_of_both)] = input
    return sum_to_shape(out, tuple(shape))


masked_unselect.derivative("input", formula="grad where the mask is true")(
    lambda grad, mask, ops: ops.masked_select(grad, mask)
)


@op(tangent="linear", complex="linear", layout="rows")
def masked_scatter(xp, input: Array, mask: Array, source: Array):
    """`input` with the elements where the mask is true replaced by the first ones of `source`, in order."""
    shape = broadcast(mask.shape, input.shape)
    _check_mask(
        "masked_scatter_ only supports boolean masks, but got mask with dtype " + from_numpy_dtype(mask.dtype).old_name,
        mask,
    )
    check_same_dtype("masked_scatter: expected self and source to have same dtypes but got{0} and {1}", input, source)
    mask = xp.broadcast_to(owned(mask), shape)
    out = xp.array(xp.broadcast_to(input, shape), order="C")
    count = int(mask.sum())
    if count > source.size:
        raise ShapeError(
            f"Number of elements of source < number of ones in mask; there are {source.size} elements "
            f"for {count} places"
        )
    out[mask] = source.reshape(-1)[:count]
    return out


masked_scatter.derivative("input", formula="grad, 0 where the mask is true")(
    lambda grad, mask, input_shape, ops: ops.sum_to_size(ops.masked_fill(grad, mask, 0), input_shape)
)
masked_scatter.derivative("source", formula="grad where the mask is true, in order, then 0")(
    lambda grad, mask, source_shape, ops: ops.filled_up(ops.masked_select(grad, mask), source_shape)
)


@op(node="MaskedScatterBackwardBackward0", tangent="linear", complex="linear")
def filled_up(xp, input: Array, shape: tuple):
    """The elements of `input` in another shape, with zeros behind them."""
    out = xp.zeros(tuple(shape), input.dtype)
    out.reshape(-1)[: input.size] = input.reshape(-1)
    return out


filled_up.derivative("input", formula="the first elements of grad")(
    lambda grad, input_shape, ops: ops.first_elements(grad, input_shape)
)


@op(node="MaskedSelectBackward0", tangent="linear", complex="linear")
def first_elements(xp, input: Array, shape: tuple):
    """The first elements, row by row, in another shape."""
    count = int(np.prod(shape))
    return input.reshape(-1)[:count].reshape(shape)


first_elements.derivative("input", formula="grad, then 0")(
    lambda grad, input_shape, ops: ops.filled_up(grad, input_shape)
)


@public_function
def nonzero(input: TensorState, *, as_tuple: bool = False):
    """Return the places of the elements that are not zero: one row each, or with `as_tuple` one tensor for each dim."""
    if not isinstance(as_tuple, bool):
        raise ArgumentError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if hasattr(input._data, "of_a_batch"):
        raise GraphError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            "aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    if input._data.dtype.kind == "u":
        require_kernel("nonzero_count_cpu", input._data.dtype)
    data = owned(input._data)
    if as_tuple:
        found = np.nonzero(data if data.ndim else data.reshape(1))
        return tuple(wrap(np.ascontiguousarray(places)) for places in found)
    return wrap(np.asfortranarray(np.argwhere(data)))


def nonzero_static(input: TensorState, *, size: int, fill_value: int = -1):
    """Return the places of the first `size` elements that are not zero, one row each; rows of `fill_value` if fewer."""
    if size < 0:
        raise ShapeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = np.argwhere(owned(input._data))[:size]
    out = np.full((size, found.shape[1]), fill_value, np.int64)
    out[: len(found)] = found
    return wrap(out)


def argwhere(input: TensorState):
    """Return the places of the elements that are not zero, one row each."""
    return nonzero(input)
