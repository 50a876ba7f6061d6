"""What index tensors, each for one dim, name together: read, written to, added to. See NOTE [Reading an index]."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, Arrays, op
from backlight.dispatch.dispatcher import composite_function
from backlight.dispatch.observation import end_write
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import DimError, ShapeError
from backlight.kernels.memory_order import in_order, order_of_strides, placed, row_major
from backlight.kernels.reduction.slices import add_slices
from backlight.ops.indexing.index_selection import owned
from backlight.ops.inplace import begin_write, inplace, refuse_writing, will_record
from backlight.ops.memory_overlap import refuse_overlaps
from backlight.sizes import Shape

WHOLE = slice(None)


def numpy_key(indices: Sequence[Array], places: Sequence[int], ndim: int) -> tuple:
    """Return index arrays as an index for NumPy."""
    key = [WHOLE] * ndim
    for place, index in zip(places, indices):
        key[place] = owned(index)
    return tuple(key)


def _index_problem(problem: IndexError, input: Array, indices: Sequence[Array], places: Sequence[int]) -> DimError:
    """Return PyTorch's error for an index that NumPy refused; it counts the dims that are indexed by tensors."""
    for number, (place, index) in enumerate(zip(places, indices)):
        size = input.shape[place]
        wrong = index[(index < -size) | (index >= size)].reshape(-1) if index.ndim else index.reshape(1)
        if wrong.size and not -size <= wrong[0] < size:
            return DimError(f"index {wrong[0]} is out of bounds for dimension {number} with size {size}")
    shapes = ", ".join(str(list(index.shape)) for index in indices)
    return DimError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")


@op(name="index", tangent="linear", complex="linear")
def index_at(xp, input: Array, indices: Arrays, places: tuple):
    """The elements that index tensors, each for one dim of `places`, name together."""
    try:
        out = xp.asarray(input[numpy_key(indices, places, input.ndim)])
    except IndexError as problem:
        raise _index_problem(problem, input, indices, places) from None
    return out if row_major(out, input, *indices) else _in_order_of_operands(out, input, indices, places)


def _in_order_of_operands(out: Array, input: Array, indices: Sequence[Array], places: Sequence[int]) -> Array:
    """Lay out indexed elements as TensorIterator does, to which the input is repeated where it is indexed."""
    named = np.broadcast_arrays(*indices)
    first = places[0] if list(places) == list(range(places[0], places[-1] + 1)) else 0
    rest = [dim for dim in range(input.ndim) if dim not in places]
    dims = named[0].ndim
    kept = [*rest[:first], *[None] * dims, *rest[first:]]
    operands = [[0 if dim is None else input.strides[dim] for dim in kept]]
    for one in named:  # with dims of size 1 before and behind, which are repeated but where the result has size 1, too
        whole = [one.nbytes] * first + [*one.strides] + [one.itemsize] * (out.ndim - first - dims)
        repeated = [dim for dim, size in enumerate(out.shape) if size > 1 and not first <= dim < first + dims]
        operands.append([0 if dim in repeated else stride for dim, stride in enumerate(whole)])
    return placed(out, in_order(out.shape, out.dtype, order_of_strides(out.shape, operands)))


index_at.derivative("input", formula="grad, added at the places read")(
    lambda grad, indices, places, input_shape, ops: ops.index_backward(grad, indices, places, input_shape)
)


@op(tangent="linear", complex="linear")
def index_backward(xp, grad_output: Array, indices: Arrays, places: tuple, shape: tuple):
    """Zeros with elements added at the places that index tensors name together."""
    return _added(xp, xp.zeros(shape, grad_output.dtype), grad_output, indices, places)


index_backward.derivative("grad_output", formula="grad at the places")(
    lambda grad, indices, places, ops: ops.index(grad, indices, places)
)


def _added(xp, out: Array, values: Array, indices: Sequence[Array], places: Sequence[int]):
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
    by_row = moved.reshape(prod(sizes), *width)
    add_slices(by_row, values.reshape(rows.size, *width), rows.reshape(-1), 0)
    return xp.ascontiguousarray(moved.transpose(np.argsort(order)))


@op(name="index_put", tangent="linear", complex="linear", layout="preserved")
def put_at(xp, input: Array, values: Array, indices: Arrays, places: tuple, accumulate: bool = False):
    """`input` with the elements that index tensors name together replaced by values, or these added to them."""
    out = xp.array(input, order="C")
    key, values = _key_and_values(out, values, indices, places)
    if accumulate:
        return _added(xp, out, xp.broadcast_to(values, out[key].shape), indices, places)
    out[key] = values
    return out


def _key_and_values(input: Array, values: Array, indices: Sequence[Array], places: Sequence[int]):
    """Return NumPy's index, and the values in the shape of what it names, or raise PyTorch's error."""
    if input.dtype != values.dtype:
        names = [from_numpy_dtype(array.dtype).old_name for array in (input, values)]
        raise ShapeError(
            f"Index put requires the source and destination dtypes match, got {names[0]} for the destination and "
            f"{names[1]} for the source.; convert the values with .to({from_numpy_dtype(input.dtype)})"
        )
    key = numpy_key(indices, places, input.ndim)
    try:
        shape = input[key].shape
    except IndexError as problem:
        raise _index_problem(problem, input, indices, places) from None
    spare = values.ndim - len(shape)
    if spare > 0 and values.shape[:spare] == (1,) * spare:
        values = values.reshape(values.shape[spare:])
    try:
        return key, np.broadcast_to(values, shape) if values.ndim else values
    except ValueError:
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None


@put_at.derivative("input", formula="grad; 0 at the places replaced")
def put_at_input(grad: Array, values_shape: Shape, indices: Sequence[Array], places: tuple, accumulate: bool, ops):
    return grad if accumulate else ops.index_put(grad, ops.new_zeros(grad, ()), indices, places)


@put_at.derivative("values", formula="grad at the places, summed over what was broadcast")
def put_at_values(grad: Array, values_shape: Shape, indices: Sequence[Array], places: tuple, ops):
    taken = ops.index(grad, indices, places)
    spare = max(len(values_shape) - taken.ndim, 0)
    return ops.sum_to_size(taken, tuple(values_shape[spare:])).reshape(values_shape)


_put_recorded = inplace(put_at, "index_put_")


@composite_function
def put_into(self, values: TensorState, indices: Sequence[TensorState], places: Sequence[int]) -> None:
    """Write values at the places that index tensors name together."""
    if will_record(self, values):
        _put_recorded(self, values, indices, places)
        return
    refuse_overlaps(self, (values, *indices), "index_put_")
    refuse_writing(self, "index_put_")
    data = writable(self)
    key, array = _key_and_values(data, values._data, indices=[index._data for index in indices], places=places)
    begin_write(self, "index_put_")
    data[key] = array
    end_write(self)
