"""Other shapes for the same elements: view, reshape, expand, and what is made of them."""

import operator
from math import prod

import numpy as np

from backlight.errors import ArgumentError, ShapeError
from backlight.layouts import contiguous_format
from backlight.ops.copying import clone
from backlight.ops.declare import op
from backlight.ops.dims import normalise_dim
from backlight.ops.operands import sum_to_shape
from backlight.sizes import Size, sizes_given

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "flatten",
    "ravel",
    "reshape",
    "unflatten",
]

ndarray = np.ndarray


@op(view=True)
def alias(xp, input):
    """The same tensor again, as a view."""
    return input[...]


@alias.derivative("input", formula="grad")
def alias_input(grad):
    return grad


@op(view=True)
def view(xp, input, size: tuple):
    """The same memory in another shape; one size may be -1."""
    try:
        return input.reshape(size, copy=False)
    except (ValueError, TypeError):
        raise view_problem("view", input, size) from None


@view.derivative("input", formula="grad in the shape of input")
def view_input(grad, input_shape):
    return grad.reshape(input_shape)


@op(node="UnsafeViewBackward0")
def unsafe_view(xp, input, size: tuple):
    """The same as `view`, of memory that nobody else will ever see, so that the result counts as no view."""
    return input.reshape(size)


@unsafe_view.derivative("input", formula="grad in the shape of input")
def unsafe_view_input(grad, input_shape):
    return grad.reshape(input_shape)


def reshape(input, *sizes, shape=()):
    """Return the elements in another shape, row by row; one size may be -1. A view where the memory allows it."""
    size = sizes_given(sizes or (shape,))
    try:
        return view(input, size)
    except ShapeError:
        checked = check_size(input._data, size, "reshape")
        return unsafe_view(clone(input, memory_format=contiguous_format), checked)


def check_size(data, size, name: str) -> tuple:
    """Return `size` with its -1 worked out, or raise PyTorch's error for a size that does not fit."""
    wanted = []
    for place, one in enumerate(size):
        try:
            wanted.append(operator.index(one))
        except TypeError:
            argument = "shape" if name == "reshape" else "size"
            raise ArgumentError(
                f"{name}(): argument '{argument}' (position 1) must be tuple of ints, but found element of type "
                f"{type(one).__name__} at pos {place}"
            ) from None
    open_places = [place for place, one in enumerate(wanted) if one == -1]
    if len(open_places) > 1:
        raise ShapeError("only one dimension can be inferred; give all sizes but one")
    if any(one < -1 for one in wanted):
        raise ShapeError(f"invalid shape dimension {min(wanted)}; a size is at least 0, or -1 to be worked out")
    known = prod(one for one in wanted if one != -1)
    if open_places:
        if known == 0 and data.size == 0:
            raise ShapeError(
                f"cannot reshape tensor of 0 elements into shape {wanted} because the unspecified dimension size -1 "
                "can be any value and is ambiguous; give that size"
            )
        if known and data.size % known == 0:
            wanted[open_places[0]] = data.size // known
            return tuple(wanted)
    elif known == data.size:
        return tuple(wanted)
    raise ShapeError(
        f"shape '{wanted}' is invalid for input of size {data.size}; the tensor has shape {list(data.shape)}, and the "
        "sizes must multiply to the same number of elements"
    )


def view_problem(name: str, data, size) -> Exception:
    """Return PyTorch's error for a view that NumPy refused."""
    check_size(data, size, name)
    return ShapeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead."
    )


@op(view=True)
def expand(xp, input, size: tuple):
    """Repeat dims of size 1, and add dims in front, without copying; -1 keeps a size."""
    return repeated_view(xp, input, size)


@expand.derivative("input", formula="grad, summed over the repeated dims")
def expand_input(grad, input_shape, ops):
    return grad if grad.shape == input_shape else ops.sum_to_size(grad, input_shape)


def repeated_view(xp, data, size):
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
    if added and min(new_shape[:added]) < 0:
        raise _expand_problem(data, size)
    if data.__class__ is not ndarray:
        data = xp.asarray(data)
    if data.flags.c_contiguous and data.size:
        try:
            return ndarray(new_shape, data.dtype, data, 0, new_strides)
        except ValueError:  # NumPy cannot lend memory of this dtype
            pass
    return np.lib.stride_tricks.as_strided(data, new_shape, new_strides)


def _expand_problem(data, size) -> Exception:
    shape, added = data.shape, len(size) - data.ndim
    if added < 0:
        return ShapeError(
            f"expand(Tensor{list(shape)}, size={list(size)}): the number of sizes provided ({len(size)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({data.ndim})"
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


def broadcast_to(input, size):
    """Return a view of `input` in a larger shape, as broadcasting would stretch it."""
    return expand(input, tuple(size))


@op(name="sum_to_size", node="SumBackward1")
def summed_to_size(xp, input, size: tuple):
    """The sum over those dims that broadcasting from `size` to the shape of `input` would stretch."""
    return sum_to_shape(input, size)


@summed_to_size.derivative("input", formula="grad, repeated over the summed dims")
def summed_to_size_input(grad, input_shape, ops):
    return ops.expand(grad, input_shape)


def sum_to_size(input, *sizes, size=()):
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
    listed = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    dims = max(map(len, listed), default=0)
    found = [1] * dims
    for shape in listed:
        for dim, size in enumerate(shape, dims - len(shape)):
            if size < 0:
                raise ShapeError(f"Trying to create tensor with negative dimension ({size}): ({size})")
            if size != 1:
                if found[dim] not in (1, size):
                    raise ShapeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape; sizes "
                        f"{found[dim]} and {size} meet at dimension {dim}"
                    )
                found[dim] = size
    return Size(found)


def broadcast_tensors(*tensors) -> tuple:
    """Return all tensors expanded to their common shape."""
    tensors = sizes_given(tensors)
    size = tuple(_common_shape(tensors))
    return tuple(tensor if tensor._data.shape == size else expand(tensor, size) for tensor in tensors)


def _common_shape(tensors) -> Size:
    size = ()
    for tensor in tensors:
        shape = tensor._data.shape
        dims = max(len(size), len(shape))
        left, right = (1,) * (dims - len(size)) + size, (1,) * (dims - len(shape)) + shape
        for dim in reversed(range(dims)):
            if left[dim] != right[dim] and 1 not in (left[dim], right[dim]):
                raise ShapeError(
                    f"The size of tensor a ({left[dim]}) must match the size of tensor b ({right[dim]}) at "
                    f"non-singleton dimension {dim}"
                )
        size = tuple(b if a == 1 else a for a, b in zip(left, right))
    return Size(size)


def flatten(input, start_dim: int = 0, end_dim: int = -1):
    """Return the tensor with the dims from `start_dim` to `end_dim` joined into one."""
    shape = input._data.shape
    start, end = normalise_dim(start_dim, len(shape)), normalise_dim(end_dim, len(shape))
    if start > end:
        raise ShapeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim; got {start_dim} and {end_dim}"
        )
    if not shape:
        return reshape(input, 1)
    if start == end:
        return input
    return reshape(input, *shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])


def unflatten(input, dim: int, sizes):
    """Return the tensor with one dim split into several of the given sizes; one may be -1."""
    shape = input._data.shape
    dim = normalise_dim(dim, len(shape))
    sizes = tuple(sizes)
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    known = prod(size for size in sizes if size != -1)
    if (known != shape[dim] and -1 not in sizes) or (-1 in sizes and (known == 0 or shape[dim] % known)):
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        )
    sizes = tuple(shape[dim] // known if size == -1 else size for size in sizes)
    return view(input, shape[:dim] + sizes + shape[dim + 1 :])


def ravel(input):
    """Return all elements in one dim, row by row."""
    data = input._data
    if data.__class__ is ndarray and not data.flags.c_contiguous:
        input = clone(input, memory_format=contiguous_format)
    return view(input, (-1,))


def _each(function):
    """Let a function of one tensor take several, or a sequence of them, and then return a tuple."""

    def on_all(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
            return function(tensors[0])
        return tuple(function(tensor) for tensor in sizes_given(tensors))

    on_all.__name__ = on_all.__qualname__ = function.__name__
    on_all.__doc__ = function.__doc__
    return on_all


@_each
def atleast_1d(input):
    """Return the tensor, or each of several, with at least one dim."""
    return input if input._data.ndim else reshape(input, 1)


@_each
def atleast_2d(input):
    """Return the tensor, or each of several, with at least two dims, added in front."""
    if input._data.ndim == 0:
        return reshape(input, 1, 1)
    return input.unsqueeze(0) if input._data.ndim == 1 else input


@_each
def atleast_3d(input):
    """Return the tensor, or each of several, with at least three dims: a vector in the middle, a matrix in front."""
    ndim = input._data.ndim
    if ndim == 0:
        return reshape(input, 1, 1, 1)
    if ndim == 1:
        return input.unsqueeze(0).unsqueeze(-1)
    return input.unsqueeze(-1) if ndim == 2 else input
