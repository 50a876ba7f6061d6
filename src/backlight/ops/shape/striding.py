"""Views by size and stride: windows along a dim, and as_strided."""

import math
from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.dispatcher import composite_function
from backlight.engine.tensor_state import TensorState, memory_of, wrap, writable
from backlight.engine.views import positions_in, same_part, shown_by_strides
from backlight.errors import ShapeError
from backlight.kernels.elementwise.complex_parts import parts_of
from backlight.kernels.memory_order import strided
from backlight.ops.dims import normalise_dim
from backlight.ops.elementwise.filling import fill_into
from backlight.ops.indexing.slicing import at, check_slice
from backlight.sizes import Shape, storage_errors

__all__ = ["as_strided", "as_strided_scatter", "unfold_copy"]


@op(view=True, complex="linear")
def unfold(xp, input: Array, dimension: int, size: int, step: int):
    """All windows of `size` slices along a dim, each `step` further, the window's slices as a new last dim."""
    dim = normalise_dim(dimension, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    if size < 0:
        raise ShapeError(f"size is {size} but must be >= 0")
    if size > length:
        raise ShapeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if not input.ndim:
        return strided(input, (size,), (input.itemsize,))
    shape, strides = list(input.shape), list(input.strides)
    shape[dim] = (length - size) // step + 1
    shape.append(size)
    strides.append(strides[dim])
    strides[dim] *= min(step, max(length, 1))  # a longer one, with which there is one window, could not be counted
    return strided(input, shape, strides)


unfold.derivative("input", formula="grad, summed over the windows that hold an element")(
    lambda grad, dimension, size, step, input_shape, ops: ops.unfold_backward(grad, input_shape, dimension, size, step)
)


@op(tangent="linear", complex="linear")
def unfold_backward(xp, grad_in: Array, input_sizes: tuple, dim: int, size: int, step: int):
    """The sum over all windows, each at its place."""
    out = xp.zeros(input_sizes or (1,), grad_in.dtype)
    dim = normalise_dim(dim, out.ndim)
    count = (out.shape[dim] - size) // step + 1
    for place in range(size):
        window = slice(place, place + (count - 1) * step + 1, step)
        out[at(dim, window)] += grad_in[..., place].reshape(out[at(dim, window)].shape)
    return out.reshape(input_sizes)


unfold_backward.derivative("grad_in", formula="the windows of grad")(
    lambda grad, dim, size, step, ops: ops.unfold_copy(grad, dim, size, step)
)


@op(node="UnfoldBackward0_copy", tangent="linear", complex="linear")
def unfold_copy(xp, input: Array, dimension: int, size: int, step: int):
    """The same as `unfold`, copied."""
    return xp.array(unfold.op.forward(xp, xp.asarray(input), dimension, size, step), order="C")


unfold_copy.derivative("input", formula="grad, summed over the windows that hold an element")(
    lambda grad, dimension, size, step, input_shape, ops: ops.unfold_backward(grad, input_shape, dimension, size, step)
)


@op(name="as_strided", view=True, complex="linear")
def strided_view(xp, input: Array, positions: np.ndarray, data: np.ndarray):
    """A view of memory that the tensor shares: `data`, whose elements lie at `positions` of it, counted row by row."""
    return data


@strided_view.derivative("input", formula="grad, added at the places that the view shows; lost beyond the input")
def strided_view_input(grad: Array, input_shape: Shape, positions: np.ndarray, ops):
    size = math.prod(input_shape)
    if not (positions == size).any():
        return ops.add_positions(grad, shape=input_shape, positions=positions)
    found = ops.add_positions(grad, shape=(size + 1,), positions=positions)
    return ops.slice(found, 0, 0, size, 1).reshape(input_shape)


@strided_view.tangent("input")
def strided_view_tangent(tangent: Array, input: Array, positions: np.ndarray, data: np.ndarray, ops):
    return ops.as_strided(tangent, positions, same_part(writable(tangent), writable(input), data))


@composite_function
@storage_errors
def as_strided(input: TensorState, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None):
    """Return a view with any size, strides and offset (counted in elements) into the memory of the tensor's base.

    Raises:
        RuntimeError: the view would reach beyond that memory.
    """
    data = strided_memory(input, tuple(size), tuple(stride), storage_offset)
    return strided_view(input, _places_in(input, data), data)


def _places_in(input: TensorState, data: Array):
    """Return for each element of a strided view its place in the input, if a gradient will need it.

    The place of what lies in the base's memory but not in the input is the input's size: it gets no gradient.
    """
    if input._edge is None:
        return None
    memory = memory_of(input)
    if memory is input._data:
        return positions_in(input, wrap(data))
    if (
        memory.dtype.kind != input._data.dtype.kind
    ):  # a view of parts, or of pairs: taken as elements of the input's dtype
        memory = parts_of(memory) if memory.dtype.kind in "cW" else memory.ravel(order="K").view(input._data.dtype)
    memory_tensor, size = wrap(memory), input._data.size
    places = np.full(memory.size, size)
    places[positions_in(memory_tensor, input)] = np.arange(size).reshape(input._data.shape)
    return places[positions_in(memory_tensor, wrap(data))]


def strided_memory(input: TensorState, size: Sequence[int], stride: Sequence[int], storage_offset: int | None):
    """Return the array that shows the memory of the tensor's base by size and strides."""
    if len(size) != len(stride):
        raise ShapeError(f"mismatch in length of strides and shape; got {list(stride)} and {list(size)}")
    if any(step < 0 for step in stride):
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if any(one < 0 for one in size):
        raise ShapeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    memory, kind = memory_of(input), input._data.dtype  # read once: another thread may replace them
    itemsize = kind.itemsize
    offset = storage_offset_of(input) if storage_offset is None else storage_offset
    last = offset + sum((one - 1) * step for one, step in zip(size, stride))
    if offset < 0:
        raise ShapeError(f"Tensor: invalid storage offset {offset}")
    if 0 not in size and ((last + 1) * itemsize > memory.nbytes):
        raise ShapeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {(last + 1) * itemsize} are out of bounds for storage "
            f"of size {memory.nbytes}"
        )
    flat = memory.ravel(order="K")
    if memory.size and not np.shares_memory(flat, memory):
        raise ShapeError("as_strided needs a base whose elements lie without gaps in memory; call .contiguous() first")
    return shown_by_strides(flat.view(kind)[offset:], size, [step * itemsize for step in stride])


def storage_offset_of(tensor: TensorState) -> int:
    """Return where a tensor's first element lies in the memory that it shares, counted in elements."""
    memory, data = memory_of(tensor), tensor._data
    if memory is data or not data.size:
        return 0
    start, own = (array.__array_interface__["data"][0] for array in (memory, data))
    return (own - start) // data.itemsize


@op(name="as_strided_scatter", tangent="linear", complex="linear", layout="preserved")
def strided_scatter(xp, input: Array, src: Array, positions: np.ndarray):
    """`input` with the elements at flat positions replaced by `src`."""
    out = xp.array(input, order="C")
    out.reshape(-1)[positions.reshape(-1)] = src.reshape(-1)
    return out


strided_scatter.derivative("input", formula="grad, 0 at the places replaced")(
    lambda grad, positions, ops: ops.put_positions(grad, ops.new_zeros(grad, positions.shape), positions=positions)
)
strided_scatter.derivative("src", formula="grad at the places replaced")(
    lambda grad, positions, ops: ops.take_positions(grad, positions=positions)
)


@composite_function
def as_strided_scatter(
    input: TensorState, src: TensorState, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
):
    """Return a copy of `input` in which what `as_strided` would show is replaced by `src`."""
    data = strided_memory(input, tuple(size), tuple(stride), storage_offset)
    check_slice(src._data.shape, tuple(size))
    return strided_scatter(input, src, positions_in(input, wrap(data)))


@composite_function
def fill_diagonal_(input: TensorState, fill_value: float, wrap: bool = False):
    """Write one value to the main diagonal, of more than two dims all equal; return the tensor.

    Args:
        wrap: begin again after the last column, with a row between, where a matrix has more rows than columns.

    Raises:
        RuntimeError: there are fewer than two dims, or more than two that differ.
    """
    shape, itemsize = input._data.shape, input._data.itemsize
    if len(shape) < 2:
        raise ShapeError(f"dimensions must larger than 1; this tensor has {len(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"all dimensions of input must be of equal length; got {list(shape)}")
    step = sum(input._data.strides) // itemsize
    fill_into(as_strided(input, (min(shape),), (step,)), fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        rows, columns = shape
        start = storage_offset_of(input) + (columns + 1) * input._data.strides[0] // itemsize
        count = -(-((rows - columns - 1) * columns) // (columns + 1))
        fill_into(as_strided(input, (count,), (step,), start), fill_value)
    return input
