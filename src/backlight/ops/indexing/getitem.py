"""Square brackets: `x[…]` and `x[…] = value`, as PyTorch reads them.

NOTE [Reading an index]
PyTorch works an index off from left to right. Integers, slices, None and Ellipsis each make a view of the view before
(select, slice, unsqueeze), so each has a node of its own. Index tensors, masks and lists are collected on the
way, with the dims that they index, and applied together at the end by one copying op, `index`. A mask stands for the
places where it is true, one index tensor for each of its dims. The same views and index tensors serve writing: a value
is copied into the view (`copy_`), or put at the index tensors (`index_put_`).
"""

import warnings
from collections.abc import Sequence
from types import EllipsisType, NoneType

import numpy as np

from backlight.dispatch.dispatcher import composite_function, dispatches_itself, dispatching, offer
from backlight.dispatch.interpreters import UNHANDLED
from backlight.dispatch.observation import end_write
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap, writable
from backlight.errors import ArgumentError, DimError, ShapeError, ValueProblem
from backlight.ops.elementwise.copying import cast, copy_into
from backlight.ops.elementwise.filling import fill_into
from backlight.ops.indexing.index_selection import INDEX_KINDS
from backlight.ops.indexing.index_writes import index_at, put_at, put_into
from backlight.ops.indexing.slicing import select, sliced
from backlight.ops.inplace import begin_write, inplace, refuse_writing, will_record
from backlight.ops.memory_overlap import refuse_expanded
from backlight.ops.scalars import element, is_plain
from backlight.ops.shape.expanding import check_expands, expand
from backlight.ops.shape.reshaping import alias, reshape, unsqueeze
from backlight.ops.shape.reshaping import view as view_of
from backlight.ops.type_promotion import BOOL, LONG

__all__ = ["index_put"]

UINT8 = np.dtype(np.uint8)
MASK_KINDS = (BOOL, UINT8)


@dispatches_itself
def get_item(input: TensorState, index):
    """Return `input[index]`."""
    if dispatching.active and (out := offer(get_item, input, index)) is not UNHANDLED:
        return out
    kind = index.__class__
    if kind is int:
        return _select(input, 0, index)
    if kind is slice:
        return _slice(input, 0, index, alone=True)
    view, found = _read(input, _as_items(index))
    if found:
        return index_at(view, list(found.values()), tuple(found))
    return alias(input) if view is input else view


def _as_items(index: TensorState | bool | Sequence) -> tuple:
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


def _is_compound(part: int) -> bool:
    return isinstance(part, (TensorState, list, tuple, slice, EllipsisType, NoneType))


def _read(input: TensorState, items: tuple):
    """Return the view that the basic parts of an index make, and {dim of the view: index tensor} for the others."""
    items = tuple(_as_tensor(item) if isinstance(item, (list, tuple, range, np.ndarray)) else item for item in items)
    ndim, indexed_dims = input._data.ndim, sum(_dims_of(item) for item in items)
    if indexed_dims > ndim and (ndim or items[0].__class__ is not int):
        raise _too_many(ndim)
    view, dim, found = input, 0, {}
    for place, item in enumerate(items):
        kind = item.__class__
        if kind is int:
            view = _select(view, dim, item, place)
        elif kind is slice:
            view = _slice(view, dim, item, alone=len(items) == 1)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - indexed_dims
        elif item is None:
            view = unsqueeze(view, dim)
            dim += 1
        elif kind is bool or isinstance(item, np.bool_):
            view, dim = _flag(view, dim, bool(item), found)
        elif isinstance(item, TensorState):
            view, dim = _tensor_index(view, dim, item, found, place)
        else:
            view = _select(view, dim, _as_number(item), place)
    return view, found


def _dims_of(item) -> int:
    """Return how many dims of the tensor one part of an index stands for."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, TensorState) and item._data.dtype.kind in "bu":
        return item._data.ndim
    return 1


def _as_number(item: object) -> int:
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


def _select(view: TensorState, dim: int, number: int, place: int = 0):
    """Select along a dim; errors name the place of the number in the index, as PyTorch's do."""
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
        raise DimError(f"index {number} is out of bounds for dimension {place} with size {size}")
    return select(view, dim, number)


def _too_many(ndim: int) -> DimError:
    return DimError(f"too many indices for tensor of dimension {ndim}")


def _slice(view: TensorState, dim: int, item: slice, *, alone: bool):
    """Return a view of some slices; full slices are skipped, unless there is nothing else."""
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
    whole = not start and (end is None or end >= shape[dim]) and step in (None, 1)  # as it is written, also of no rows
    if whole and not alone:
        return view
    start, end, step = slice(start, end, step).indices(shape[dim])
    return sliced(view, dim, start, max(start, end), step)


def _bound(value: float) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError("slice indices must be integers or None or have an __index__ method") from None


def _flag(view: TensorState, dim: int, flag: bool, found: dict):
    """Index with True or False: a new dim of size 1 or 0."""
    view = unsqueeze(view, dim)
    found[dim] = wrap(np.zeros(1 if flag else 0, np.int64))
    return view, dim + 1


def _tensor_index(view: TensorState, dim: int, item: TensorState, found: dict, place: int):
    data = item._data
    if data.dtype == UINT8 and data.ndim:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
            UserWarning,
            stacklevel=5,
        )
    if data.dtype in MASK_KINDS:
        return _mask(view, dim, data.astype(bool), found) if data.ndim else _flag(view, dim, bool(data), found)
    if data.dtype.kind in "iu" and not data.ndim and not hasattr(data, "of_a_batch"):
        return _select(view, dim, int(data), place), dim
    if data.dtype not in INDEX_KINDS:
        raise DimError(
            "tensors used as indices must be long, int, byte or bool tensors; this one is "
            f"{from_numpy_dtype(data.dtype)}: convert it with .long()"
        )
    if not data.ndim and not hasattr(data, "of_a_batch"):  # inside vmap a number may differ as other indices do
        return _select(view, dim, int(data), place), dim
    if dim >= view._data.ndim:
        raise _too_many(view._data.ndim)
    found[dim] = item
    return view, dim + 1


def _mask(view: TensorState, dim: int, mask: np.ndarray, found: dict):
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


def _as_tensor(sequence: Sequence[int]):
    """Return a list, tuple, range or array of an index as a tensor."""
    if isinstance(sequence, np.ndarray):
        if sequence.dtype.kind == "i" and sequence.dtype not in INDEX_KINDS:
            sequence = sequence.astype(np.int64)
        return wrap(sequence)
    if isinstance(sequence, range):
        return wrap(np.arange(sequence.start, sequence.stop, sequence.step))
    array = np.array(_plain(sequence))
    return wrap(array.astype(np.int64) if not array.size or array.dtype.kind == "f" else array)


def _plain(sequence: Sequence[int]) -> list:
    """Return nested sequences of numbers and tensors as nested lists of what NumPy reads."""
    return [
        part._data if isinstance(part, TensorState) else _plain(part) if isinstance(part, (list, tuple)) else part
        for part in sequence
    ]


def index_put(input: TensorState, indices: Sequence[TensorState], values: TensorState, accumulate: bool = False):
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
            raise DimError(f"{_too_many(input._data.ndim)} (got {len(indices)})")
        else:
            found[dim] = reshape(index, 1) if not data.ndim and len(indices) == 1 and not input._data.ndim else index
            dim += 1
    return put_at(input, values, list(found.values()), tuple(found), accumulate)


index_put_ = inplace(index_put)


def _is_one(value: object) -> bool:
    return not isinstance(value, TensorState) or not value._data.ndim


def set_item(input: TensorState, index: TensorState | Sequence, value: TensorState) -> None:
    """Carry out `input[index] = value`.

    Raises:
        TypeError: the value is neither a number nor a tensor.
        RuntimeError: its shape does not broadcast to that of `input[index]`, or the tensor may not be written to.
    """
    if not isinstance(value, TensorState) and not isinstance(value, (bool, int, float, complex, np.generic)):
        kind = from_numpy_dtype(input._data.dtype).old_name
        raise ArgumentError(f"can't assign a {_name_of(value)} to a torch.{kind}Tensor; make a tensor of it first")
    if index.__class__ is int:
        view, found = _select(input, 0, index), None
    elif isinstance(index, TensorState) and index._data.dtype.kind == "b" and index._data.ndim:
        set_where(input, index, value)
        return
    elif isinstance(index, TensorState) and index._data.dtype.kind == "u" and index._data.ndim and _is_one(value):
        raise ShapeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    else:
        view, found = _read(input, _as_items(index))
    if found:
        value = (
            _as_element(value, view._data.dtype) if not isinstance(value, TensorState) else _without_leading_ones(value)
        )
        put_into(view, value, list(found.values()), tuple(found))
    elif isinstance(value, TensorState) and (value._data.ndim or not view._data.ndim):
        copy_into(view, _fitted(value, view))
    else:
        refuse_expanded(view)
        if not isinstance(value, TensorState) and (not is_plain(value, view._data.dtype) or will_record(view)):
            value = _as_element(value, view._data.dtype)
        fill_into(view, value)


def _as_element(value: float, kind: np.dtype):
    """Return a number as a 0-d tensor of a dtype; integers drop what is behind the point."""
    if isinstance(value, int) and not -LONG <= value < LONG:
        raise ValueProblem(f"Overflow when unpacking long long; an int must be -2**63 to 2**63 - 1, got {value}")
    return wrap(np.asarray(element(value, kind, checks_halves=False)))


@composite_function
def set_where(input: TensorState, mask: TensorState, value: TensorState) -> None:
    """Carry out `input[mask] = value`; one value for all places is cast, and written without looking them up."""
    if not isinstance(value, TensorState):
        value = _as_element(value, input._data.dtype)
    single = value._data.size == 1
    if single:
        value = cast(value, input._data.dtype)
    if single and mask._data.shape == input._data.shape and not will_record(input, value):
        refuse_writing(input, "index_put_")
        refuse_expanded(input, "masked_fill_")  # PyTorch's index_put_ calls it
        begin_write(input, "index_put_")
        np.copyto(writable(input), value._data.reshape(()), where=mask._data)
        end_write(input)
        return
    _, found = _read(input, (mask,))
    put_into(input, value, list(found.values()), tuple(found))
    if single:
        refuse_expanded(input, "masked_fill_")


def _name_of(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _fitted(value: TensorState, view: TensorState):
    """Return a value in the shape of the view that it is to be copied into, by the views that PyTorch makes.

    So it may also be a part of what is written to.
    """
    shape = view._data.shape
    if value._data.shape == shape:
        return value
    trimmed = _without_leading_ones(value)
    check_expands(trimmed._data, shape)
    trimmed = view_of(value, trimmed._data.shape) if trimmed is value else trimmed
    return trimmed if trimmed._data.shape == shape else expand(trimmed, shape)


def _without_leading_ones(value: TensorState):
    """Return a view of a tensor without the dims of size 1 that it begins with, or itself if there are none."""
    shape = value._data.shape
    spare = next((place for place, size in enumerate(shape) if size != 1), len(shape))
    return reshape(value, shape[spare:]) if spare else value
