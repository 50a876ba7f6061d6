"""Square brackets: `x[…]` and `x[…] = value`, as PyTorch reads them.

NOTE [Reading an index]
PyTorch works an index off from left to right. Integers, slices, None and Ellipsis each make a view of the view before
(select, slice, unsqueeze), so each has a node of its own. Index tensors, masks and lists are collected on the
way, with the dims that they index, and applied together at the end by one copying op, `index`. A mask stands for the
places where it is true, one index tensor for each of its dims. The same views and index tensors serve writing: a value
is copied into the view (`copy_`), or put at the index tensors (`index_put_`).
"""

import warnings
from types import EllipsisType, NoneType

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.errors import ArgumentError, DimError, ShapeError, ValueProblem
from backlight.graph.state import TensorState, wrap
from backlight.ops.copying import copy_into, fill_into
from backlight.ops.declare import Arrays, op
from backlight.ops.inplace import inplace
from backlight.ops.repeating import check_expands
from backlight.ops.selecting import INDEX_KINDS, add_rows
from backlight.ops.shaping import alias, reshape, unsqueeze
from backlight.ops.slicing import select, sliced

__all__ = ["index_put"]

WHOLE = slice(None)


# --- reading the index -----------------------------------------------------------------------------------------------


def get_item(input, index):
    """Return `input[index]`."""
    view, found = _read(input, _as_items(index))
    if found:
        return index_at(view, list(found.values()), tuple(found))
    return alias(input) if view is input else view


def _as_items(index) -> tuple:
    """Return an index as the tuple of its parts."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(_is_compound(part) for part in index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9;"
            " use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different result",
            UserWarning,
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def _is_compound(part) -> bool:
    return isinstance(part, (TensorState, list, tuple, slice, EllipsisType, NoneType))


def _read(input, items: tuple):
    """Return the view that the basic parts of an index make, and {dim of the view: index tensor} for the others."""
    items = tuple(_as_tensor(item) if isinstance(item, (list, tuple, range, np.ndarray)) else item for item in items)
    ndim, asked = input._data.ndim, sum(_dims_of(item) for item in items)
    if asked > ndim and (ndim or items[0].__class__ is not int):
        raise _too_many(ndim)
    view, dim, found = input, 0, {}
    for item in items:
        kind = item.__class__
        if kind is int:
            view = _select(view, dim, item)
        elif kind is slice:
            view = _slice(view, dim, item, alone=len(items) == 1)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - asked
        elif item is None:
            view = unsqueeze(view, dim)
            dim += 1
        elif kind is bool or isinstance(item, np.bool_):
            view, dim = _flag(view, dim, bool(item), found)
        elif isinstance(item, TensorState):
            view, dim = _tensor_index(view, dim, item, found)
        else:
            view = _select(view, dim, _as_number(item))
    return view, found


def _dims_of(item) -> int:
    """Return how many dims of the tensor one part of an index stands for."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, TensorState) and item._data.dtype.kind in "bu":
        return item._data.ndim
    return 1


def _as_number(item) -> int:
    if isinstance(item, str):
        raise ArgumentError(
            f"new(): invalid data type 'str'; an index must be integers, slices or tensors, got {item!r}"
        )
    try:
        return item.__index__()
    except (AttributeError, TypeError):
        raise DimError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})"
        ) from None


def _select(view, dim: int, number: int):
    shape = view._data.shape
    if not shape:
        raise DimError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    if dim >= len(shape):
        raise _too_many(len(shape))
    size = shape[dim]
    if not -size <= number < size:
        raise DimError(f"index {number} is out of bounds for dimension {dim} with size {size}")
    return select(view, dim, number)


def _too_many(ndim: int) -> DimError:
    return DimError(f"too many indices for tensor of dimension {ndim}")


def _slice(view, dim: int, item: slice, *, alone: bool):
    """Return a view of some slices; the whole dim is passed over, unless it is all that was asked for."""
    shape = view._data.shape
    if dim >= len(shape):
        if not shape:
            raise DimError("slice() cannot be applied to a 0-dim tensor.")
        raise _too_many(len(shape))
    start, end, step = (one if one is None else _bound(one) for one in (item.start, item.stop, item.step))
    if step is not None and step <= 0:
        raise ValueProblem(
            "slice step cannot be zero" if step == 0 else f"step must be greater than zero; got {step}: see flip()"
        )
    start, end, step = slice(start, end, step).indices(shape[dim])
    if not alone and (start, end, step) == (0, shape[dim], 1):
        return view
    return sliced(view, dim, start, max(start, end), step)


def _bound(value) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError("slice indices must be integers or None or have an __index__ method") from None


def _flag(view, dim: int, flag: bool, found: dict):
    """Index with True or False: a new dim of size 1 or 0."""
    view = unsqueeze(view, dim)
    found[dim] = wrap(np.zeros(1 if flag else 0, np.int64))
    return view, dim + 1


def _tensor_index(view, dim: int, item, found: dict):
    data = item._data
    if data.dtype.kind == "u" and data.ndim:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
            UserWarning,
            stacklevel=5,
        )
    if data.dtype.kind in "bu":
        return _mask(view, dim, data.astype(bool), found) if data.ndim else _flag(view, dim, bool(data), found)
    if data.dtype not in INDEX_KINDS:
        raise DimError(
            "tensors used as indices must be long, int, byte or bool tensors; this one is "
            f"{from_numpy_dtype(data.dtype)}: convert it with .long()"
        )
    if not data.ndim:
        return _select(view, dim, int(data)), dim
    if dim >= view._data.ndim:
        raise _too_many(view._data.ndim)
    found[dim] = item
    return view, dim + 1


def _mask(view, dim: int, mask, found: dict):
    """Collect the places where a mask is true, one index tensor for each of its dims."""
    shape = view._data.shape
    if dim + mask.ndim > len(shape):
        raise _too_many(len(shape))
    for place, size in enumerate(mask.shape):
        if size != shape[dim + place]:
            raise DimError(
                f"The shape of the mask {list(mask.shape)} at index {place} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {dim + place}"
            )
    for place, numbers in enumerate(np.nonzero(mask)):
        found[dim + place] = wrap(numbers)
    return view, dim + mask.ndim


def _as_tensor(sequence):
    """Return a list, tuple, range or array of an index as a tensor."""
    if isinstance(sequence, np.ndarray):
        return wrap(sequence)
    if isinstance(sequence, range):
        return wrap(np.arange(sequence.start, sequence.stop, sequence.step))
    array = np.array(_plain(sequence))
    return wrap(array.astype(np.int64) if not array.size else array)


def _plain(sequence) -> list:
    """Return nested sequences of numbers and tensors as nested lists of what NumPy reads."""
    return [
        part._data if isinstance(part, TensorState) else _plain(part) if isinstance(part, (list, tuple)) else part
        for part in sequence
    ]


# --- the ops that index tensors are applied by -----------------------------------------------------------------------


def _key(indices, places, ndim: int) -> tuple:
    """Return index arrays as an index for NumPy."""
    key = [WHOLE] * ndim
    for place, index in zip(places, indices):
        key[place] = index
    return tuple(key)


def _index_problem(problem: IndexError, input, indices, places) -> DimError:
    """Return PyTorch's error for an index that NumPy refused."""
    for place, index in zip(places, indices):
        size = input.shape[place]
        wrong = index[(index < -size) | (index >= size)].reshape(-1) if index.ndim else index.reshape(1)
        if wrong.size and not -size <= wrong[0] < size:
            return DimError(f"index {wrong[0]} is out of bounds for dimension {place} with size {size}")
    shapes = ", ".join(str(list(index.shape)) for index in indices)
    return DimError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")


@op(name="index")
def index_at(xp, input, indices: Arrays, places: tuple):
    """The elements that index tensors, each for one dim of `places`, name together."""
    try:
        return xp.asarray(input[_key(indices, places, input.ndim)])
    except IndexError as problem:
        raise _index_problem(problem, input, indices, places) from None


@index_at.derivative("input", formula="grad, added at the places read")
def index_at_input(grad, indices, places, input_shape, ops):
    return ops.index_backward(grad, indices, places, input_shape)


@op(node="IndexBackwardBackward0")
def index_backward(xp, grad_output, indices: Arrays, places: tuple, shape: tuple):
    """Zeros with elements added at the places that index tensors name together."""
    return _added(xp, xp.zeros(shape, grad_output.dtype), grad_output, indices, places)


@index_backward.derivative("grad_output", formula="grad at the places")
def index_backward_grad_output(grad, indices, places, ops):
    return ops.index(grad, indices, places)


def _added(xp, out, values, indices, places):
    """Add values at index tensors, in place: the dims indexed are brought to the front, where they count as rows."""
    shape = out.shape
    named = np.broadcast_arrays(*indices)
    together = list(places) == list(range(places[0], places[-1] + 1))
    first = places[0] if together else 0
    indexed_dims = range(first, first + named[0].ndim)
    rest = [dim for dim in range(len(shape)) if dim not in places]
    order = [*places, *rest]
    moved = xp.ascontiguousarray(out.transpose(order))
    sizes = [shape[dim] for dim in places]
    rows = np.zeros(named[0].shape, np.int64)
    for index, size in zip(named, sizes):
        rows = rows * size + np.where(index < 0, index + size, index)
    values = xp.moveaxis(values, tuple(indexed_dims), tuple(range(named[0].ndim)))
    width = [shape[dim] for dim in rest]
    add_rows(moved.reshape(-1, *width), rows.reshape(-1), values.reshape(-1, *width))
    return xp.ascontiguousarray(moved.transpose(np.argsort(order)))


@op(name="index_put")
def put_at(xp, input, values, indices: Arrays, places: tuple, accumulate: bool = False):
    """`input` with the elements that index tensors name together replaced by values, or these added to them."""
    if input.dtype != values.dtype:
        names = [from_numpy_dtype(array.dtype).old_name for array in (input, values)]
        raise ShapeError(
            f"Index put requires the source and destination dtypes match, got {names[0]} for the destination and "
            f"{names[1]} for the source.; convert the values with .to({from_numpy_dtype(input.dtype)})"
        )
    out, key = xp.array(input, order="C"), _key(indices, places, input.ndim)
    try:
        shape = out[key].shape
    except IndexError as problem:
        raise _index_problem(problem, input, indices, places) from None
    spare = values.ndim - len(shape)
    if spare > 0 and values.shape[:spare] == (1,) * spare:
        values = values.reshape(values.shape[spare:])
    try:
        values = xp.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None
    if accumulate:
        return _added(xp, out, values, indices, places)
    out[key] = values
    return out


@put_at.derivative("input", formula="grad; 0 at the places replaced")
def put_at_input(grad, values_shape, indices, places, accumulate, ops):
    return grad if accumulate else ops.index_put(grad, ops.new_zeros(grad, ()), indices, places)


@put_at.derivative("values", formula="grad at the places, summed over what was broadcast")
def put_at_values(grad, values_shape, indices, places, ops):
    taken = ops.index(grad, indices, places)
    spare = max(len(values_shape) - taken.ndim, 0)
    return ops.sum_to_size(taken, tuple(values_shape[spare:])).reshape(values_shape)


def index_put(input, indices, values, accumulate=False):
    """Return a copy in which the elements that a tuple of index tensors names are replaced by `values`, or added to.

    Args:
        indices: one tensor for each of the first dims: integers, or masks, which stand for the places of True.
        values: a tensor that broadcasts to the shape of what `input[indices]` would give.
        accumulate: add to what is there, also several times to the same place.
    """
    for place, index in enumerate(indices):
        if not isinstance(index, TensorState):
            raise ArgumentError(f"expected Tensor as element {place} in argument 0, but got {type(index).__name__}")
    found, dim = {}, 0
    for index in indices:
        data = index._data
        if data.dtype.kind in "bu" and data.ndim:
            _, dim = _mask(input, dim, data.astype(bool), found)
        elif dim >= input._data.ndim:
            raise _too_many(input._data.ndim)
        else:
            found[dim] = reshape(index, 1) if not data.ndim and len(indices) == 1 and not input._data.ndim else index
            dim += 1
    return put_at(input, values, list(found.values()), tuple(found), accumulate)


index_put_ = inplace(index_put)


# --- writing ---------------------------------------------------------------------------------------------------------


def set_item(input, index, value) -> None:
    """Carry out `input[index] = value`.

    Raises:
        TypeError: the value is neither a number nor a tensor.
        RuntimeError: its shape does not broadcast to that of `input[index]`, or the tensor may not be written to.
    """
    if not isinstance(value, TensorState) and not isinstance(value, (bool, int, float, np.generic)):
        kind = from_numpy_dtype(input._data.dtype).old_name
        raise ArgumentError(f"can't assign a {_name_of(value)} to a torch.{kind}Tensor; make a tensor of it first")
    view, found = _read(input, _as_items(index))
    if found:
        if not isinstance(value, TensorState):
            value = wrap(np.asarray(value).astype(view._data.dtype))
        if value._data.ndim == 0 and value._data.dtype != view._data.dtype and value._edge is None:
            value = wrap(value._data.astype(view._data.dtype))
        write_put(view, value, list(found.values()), tuple(found))
    elif isinstance(value, TensorState):
        value = _without_leading_ones(value, view._data.ndim)
        check_expands(value._data, view._data.shape)
        copy_into(view, value)
    else:
        fill_into(view, value)


def _name_of(value) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


write_put = inplace(put_at, "index_put_")


def _without_leading_ones(value, ndim: int):
    shape = value._data.shape
    spare = 0
    while len(shape) - spare > ndim and shape[spare] == 1:
        spare += 1
    return reshape(value, shape[spare:]) if spare else value
