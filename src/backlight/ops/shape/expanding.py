"""Repeated elements: expand, which copies nothing, repeat, tile and repeat_interleave, which copy."""

from collections.abc import Sequence
from operator import index

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import sum_to_shape
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.kernels.memory_order import strided
from backlight.layouts import contiguous_format
from backlight.ops.dims import normalise_dim
from backlight.ops.elementwise.copying import clone
from backlight.ops.indexing.index_selection import index_select, owned
from backlight.ops.number_operands import no_kernel
from backlight.ops.shape.reshaping import flatten, reshape, unsqueeze
from backlight.sizes import Shape, Size, broadcast, check_storage, sizes_given, storage_errors

__all__ = ["broadcast_shapes", "broadcast_tensors", "broadcast_to", "repeat_interleave", "tile"]

ndarray = np.ndarray


@op(view=True, complex="linear")
def expand(xp, input: Array, size: tuple):
    """Repeat dims of size 1, and add dims in front, without copying; -1 keeps a size."""
    return repeated_view(xp, input, size)


expand.derivative("input", formula="grad, summed over the repeated dims")(
    lambda grad, input_shape, ops: grad if grad.shape == input_shape else ops.sum_to_size(grad, input_shape)
)


def repeated_view(xp, data: Array, size: Sequence[int]):
    """Return a view of an array in a larger shape, with stride 0 where it repeats.

    `np.broadcast_to` does the same in 2 µs; this takes a fraction where the memory is contiguous.
    """
    shape, strides = data.shape, data.strides
    added = len(size) - len(shape)
    if added < 0:
        raise _expand_problem(data, size)
    new_shape, new_strides = list(size), [0] * len(size)
    for dim, present in enumerate(shape, added):
        wanted = new_shape[dim]
        if wanted == present or wanted == -1:
            new_shape[dim] = present
            new_strides[dim] = strides[dim - added]
        elif present != 1 or wanted < 0:
            raise _expand_problem(data, size)
    if added:
        least = min(new_shape[:added])
        if least < 0:
            raise _expand_problem(data, size)
        if least < 2 and shape:  # a dim of size 1 has the stride of a longer one
            for dim in reversed(range(added)):
                new_strides[dim] = new_shape[dim + 1] * new_strides[dim + 1] if new_shape[dim] == 1 else 0
    if data.__class__ is not ndarray:
        data = xp.asarray(data)
    if data.flags.c_contiguous and data.size:
        try:
            return ndarray(new_shape, data.dtype, data, 0, new_strides)
        except ValueError:  # NumPy cannot lend memory of this dtype
            pass
    return strided(data, new_shape, new_strides)


def check_expands(data: Array, size: Sequence[int]) -> None:
    """Raise PyTorch's error unless an array can be expanded to `size`, which has no -1."""
    shape = data.shape
    if shape != size:
        tail = size[len(size) - len(shape) :]
        if len(shape) > len(size) or any(one not in (1, wanted) for one, wanted in zip(shape, tail)):
            raise _expand_problem(data, size)


def _expand_problem(data: Array, size: Sequence[int]) -> Exception:
    shape, added = data.shape, len(size) - data.ndim
    if added < 0:
        kind = from_numpy_dtype(data.dtype).old_name
        return ShapeError(
            f"expand(torch.{kind}Tensor{{{list(shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({data.ndim})"
        )
    for dim in reversed(range(len(size))):
        wanted = size[dim]
        if dim < added and wanted < 0:
            return ShapeError(
                f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {dim}; "
                "-1 keeps the size of a dim that exists"
            )
        if dim >= added and wanted not in (-1, shape[dim - added]) and (shape[dim - added] != 1 or wanted < 0):
            return ShapeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({shape[dim - added]}) at "
                f"non-singleton dimension {dim}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}\n"
                "  Only dims of size 1 can be expanded: see repeat() for copies of a longer one"
            )
    return ShapeError(f"cannot expand {list(shape)} to {list(size)}")


def broadcast_to(input: TensorState, *sizes, size: Sequence[int] | None = None):
    """Return a view of `input` in a larger shape, as broadcasting would stretch it."""
    if not sizes and size is None:
        raise ArgumentError('broadcast_to() missing 1 required positional arguments: "size"')
    return expand(input, sizes_given(sizes or (size,)))


@op(name="sum_to_size", node="SumBackward1", tangent="linear", complex="linear", layout="rows")
def summed_to_size(xp, input: Array, size: tuple):
    """The sum over those dims that broadcasting from `size` to the shape of `input` would stretch."""
    return sum_to_shape(input, size)


summed_to_size.derivative("input", formula="grad, repeated over the summed dims")(
    lambda grad, input_shape, ops: ops.expand(grad, input_shape)
)


def sum_to_size(input: TensorState, *sizes, size: Sequence = ()):
    """Sum over dims so that the result has the given size, from which broadcasting leads back.

    Raises:
        RuntimeError: broadcasting does not lead from `size` to the shape of the tensor.
    """
    wanted = tuple(sizes_given(sizes or (size,)))
    shape = input._data.shape
    if wanted == shape:
        return input
    tail = shape[len(shape) - len(wanted) :]
    if len(wanted) > len(shape) or any(one not in (1, present) for one, present in zip(wanted, tail)):
        raise ShapeError(
            f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.; each size must be 1 or "
            "the tensor's own"
        )
    return summed_to_size(input, wanted)


def broadcast_shapes(*shapes) -> Size:
    """Return the shape that tensors of these shapes broadcast to."""
    found = ()
    for place, shape in enumerate(shapes):
        shape = (shape,) if isinstance(shape, int) else shape
        if not isinstance(shape, (tuple, list)) or not all(isinstance(size, int) for size in shape):
            raise ShapeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
        shape = tuple(shape)
        if any(size < 0 for size in shape):
            raise ValueProblem("Attempting to broadcast a dimension with negative length!")
        try:
            found = broadcast(found, shape)
        except ShapeError:
            meeting = range(-1, -min(len(shape), len(found)) - 1, -1)
            dim = next(dim for dim in meeting if shape[dim] not in (1, found[dim]) and found[dim] != 1)
            raise ShapeError(
                f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}! Mismatching argument at index "
                f"{place} had {shape}; but expected shape should be broadcastable to {list(found)}"
            ) from None
    return Size(found)


def broadcast_tensors(*tensors) -> tuple:
    """Return all tensors expanded to their common shape."""
    tensors = sizes_given(tensors)
    size = broadcast(*[tensor._data.shape for tensor in tensors])
    return tuple(tensor if tensor._data.shape == size else expand(tensor, size) for tensor in tensors)


@op(tangent="linear", complex="linear", layout="rows")
def repeat(xp, input: Array, repeats: tuple):
    """The tensor laid `repeats` times side by side, in a copy."""
    return xp.tile(input, repeats)


@repeat.derivative("input", formula="grad, summed over the copies")
def repeat_input(grad: Array, input_shape: Shape, repeats: tuple, ops):
    added = len(repeats) - len(input_shape)
    sizes = (1,) * added + tuple(input_shape)
    apart = tuple(part for pair in zip(repeats, sizes) for part in pair)
    summed = ops.sum_to_size(grad.reshape(apart), tuple(part for size in sizes for part in (1, size)))
    return summed.reshape(input_shape)


def repeated(input: TensorState, *counts, repeats: Sequence[int] | None = None):
    """Lay the tensor side by side: `repeat(2, 3)` twice along dim 0 and three times along dim 1, in a copy.

    Raises:
        RuntimeError: there are fewer counts than dims, or one is negative.
    """
    if not counts and repeats is None:
        raise ArgumentError('repeat() missing 1 required positional arguments: "repeats"')
    counts = tuple(map(index, sizes_given(counts or (repeats,))))
    shape = input._data.shape
    if len(counts) < len(shape):
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor; got "
            f"{len(counts)} counts for {len(shape)} dims"
        )
    if any(count < 0 for count in counts):
        sizes = (1,) * (len(counts) - len(shape)) + shape
        wanted = [count * size for count, size in zip(counts, sizes)]
        raise ShapeError(f"Trying to create tensor with negative dimension {min(wanted)}: {wanted}")
    return repeat(input, counts)


def tile(input: TensorState, *counts, dims: Sequence = ()):
    """Lay the tensor side by side; fewer counts than dims stand for the last dims."""
    counts = sizes_given(counts or (dims,))
    return (
        repeated(input, (1,) * (input._data.ndim - len(counts)) + tuple(counts))
        if counts
        else clone(input, memory_format=contiguous_format)
    )


@composite_function
@storage_errors
def repeat_interleave(
    input: TensorState, repeats: TensorState | int | None = None, dim: int | None = None, *, output_size=None
):
    """Repeat each element, or each slice along `dim`, as often as `repeats` says: once for all, or for each.

    Without `repeats`, `input` itself says how often each of 0, 1, 2, … is repeated.

    Raises:
        RuntimeError: a count is negative, or there is not one for each slice.
    """
    if repeats is None:
        counts = _counts(input)
        check_storage((int(counts.sum(dtype=np.float64)),), input._data.itemsize)
        _check_output_size(output_size, int(counts.sum()))
        return wrap_as(np.repeat(np.arange(input._data.size), counts), input)
    if dim is None:
        input, dim = flatten(input), 0
    dim = normalise_dim(dim, input._data.ndim)
    if not input._data.ndim:
        input = reshape(input, 1)
    length = input._data.shape[dim]
    if isinstance(repeats, TensorState) and repeats._data.size == 1:
        repeats = int(_counts(repeats).reshape(()))
    if not isinstance(repeats, TensorState):
        if repeats < 0:
            raise ShapeError(f"Repeats must be non-negative; got {repeats}")
        _check_output_size(output_size, length * repeats)
        expanded = expand(
            unsqueeze(input, dim + 1), (-1,) * (dim + 1) + (repeats,) + (-1,) * (input._data.ndim - dim - 1)
        )
        return flatten(clone(expanded, memory_format=contiguous_format), dim, dim + 1)
    counts = _counts(repeats)
    if counts.size != length:
        raise ShapeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size({dim}) = {length}"
        )
    _check_output_size(output_size, int(counts.sum()))
    return index_select(input, dim, wrap_as(np.repeat(np.arange(length), counts), repeats))


def _counts(repeats: TensorState) -> np.ndarray:
    data = repeats._data
    if data.dtype.kind != "i":
        raise no_kernel("repeat_interleave_cpu", data.dtype, "convert it with .long()")
    if data.ndim > 1:
        raise ShapeError("repeat_interleave only accept 1D vector as repeat")
    data = owned(data)
    if (data < 0).any():
        raise ShapeError("repeats can not be negative")
    return data


def wrap_as(positions: Array, like: TensorState):
    return wrap(positions.astype(like._data.dtype))


def _check_output_size(given, found: int) -> None:
    if given is not None and given != found:
        raise ShapeError(f"allocated size does not match required size; output_size must be {found}, got {given}")
