"""Other shapes for the same elements: view, reshape, flatten, squeeze, and functions that use them."""

import operator
from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import ArgumentError, ShapeError
from backlight.kernels.memory_order import row_major, strided, viewed
from backlight.layouts import contiguous_format
from backlight.ops.dims import normalise_dim, normalise_dims
from backlight.ops.elementwise.copying import clone
from backlight.sizes import Shape, sizes_given, spread_sizes

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "flatten", "ravel", "reshape", "squeeze", "unflatten", "unsqueeze"]

ndarray = np.ndarray


@op(view=True, complex="linear")
def alias(xp, input: Array):
    """The same tensor again, as a view."""
    return input[...]


alias.derivative("input", formula="grad")(lambda grad: grad)


def _reshaping(name: str, meaning: str):
    """Declare one of the ops that give the same memory another shape; they differ by their names only."""

    def forward(xp, input: Array, size: tuple):
        try:
            return viewed(input, size)
        except (ValueError, TypeError):
            raise view_problem("view", input, size) from None

    forward.__doc__ = meaning
    made = op(forward, name=name, view=True, complex="linear")

    @made.derivative("input", formula="grad in the shape of input")
    def reshaped_input(grad: Array, input_shape: Shape):
        return grad.reshape(input_shape)

    return made


view = _reshaping("view", "The same memory in another shape; one size may be -1.")
reshape_alias = _reshaping("reshape_alias", "The same as `view`, of memory with gaps or another order: for `reshape`.")


@op(view=True, node="ViewBackward1", complex="linear")
def view_as_dtype(xp, input: Array, kind: np.dtype):
    """The same bytes, read as elements of another dtype."""
    return input.view(kind)


def view_bytes(input: TensorState, kind: np.dtype):
    """Return the same memory read as elements of another dtype; the last dim grows or shrinks with their size.

    Raises:
        RuntimeError: the last dim does not hold a whole number of the new elements.
    """
    data = writable(input)
    if data.dtype.itemsize != kind.itemsize:
        _check_bytes(data, kind)
    return view_as_dtype(input, kind)


def _check_bytes(data: Array, kind: np.dtype) -> None:
    names = [from_numpy_dtype(one).old_name for one in (data.dtype, kind)]
    what = f"to view {names[0]} as {names[1]} (different element sizes)"
    if not data.ndim:
        raise ShapeError(f"self.dim() cannot be 0 {what}")
    times = kind.itemsize // data.itemsize
    if times > 1 and data.shape[-1] % times:
        raise ShapeError(f"self.size(-1) must be divisible by {times} {what}, but got {data.shape[-1]}")
    if data.strides[-1] != data.itemsize and data.shape[-1] > 1:
        raise ShapeError(f"self.stride(-1) must be 1 {what}, but got {data.strides[-1] // data.itemsize}")


@op(tangent="linear", complex="linear")
def unsafe_view(xp, input: Array, size: tuple):
    """The same as `view`, of memory without another owner, so that the result counts as no view."""
    return input.reshape(size)


unsafe_view.derivative("input", formula="grad in the shape of input")(
    lambda grad, input_shape: grad.reshape(input_shape)
)


def reshape(input: TensorState, *sizes, shape: Sequence | None = None):
    """Return the elements in another shape, row by row; one size may be -1. A view where the memory allows it."""
    size = spread_sizes(sizes, shape, "reshape", "shape")
    try:
        return view(input, size) if input._data.flags.c_contiguous else reshape_alias(input, size)
    except ShapeError:
        checked = check_size(input._data, size, "reshape")
        return unsafe_view(clone(input, memory_format=contiguous_format), checked)


def check_size(data: Array, size: Sequence[int], name: str) -> tuple:
    """Return `size` with its -1 worked out, or raise PyTorch's error for a size that does not fit."""
    wanted = []
    if size.__class__ is not tuple and not hasattr(type(size), "__iter__"):  # what only has __getitem__ may never end
        argument = "shape" if name == "reshape" else "size"
        kind = type(size).__name__
        raise ArgumentError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not {kind}")
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
        at = next(place for place, one in enumerate(wanted) if one < -1)
        raise ShapeError(
            f"invalid shape dimension {wanted[at]} at index {at} of shape {wanted}; a size is at least 0, or -1 to be "
            "worked out"
        )
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


def view_problem(name: str, data: Array, size: Sequence[int]) -> Exception:
    """Return PyTorch's error for a view that NumPy refused."""
    check_size(data, size, name)
    return ShapeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead."
    )


def flatten(input: TensorState, start_dim: int = 0, end_dim: int = -1):
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


def unflatten(input: TensorState, dim: int, sizes: Sequence[int]):
    """Return the tensor with one dim split into several of the given sizes; one may be -1."""
    shape = input._data.shape
    dim = normalise_dim(dim, len(shape))
    sizes = tuple(sizes)
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    if not shape:
        raise ShapeError("unflatten got an unexpected error:\na tensor of no dims has none to split")
    if sizes.count(-1) > 1:
        raise ShapeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    known = prod(size for size in sizes if size != -1)
    if (known != shape[dim] and -1 not in sizes) or (-1 in sizes and (known == 0 or shape[dim] % known)):
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        )
    sizes = tuple(shape[dim] // known if size == -1 else size for size in sizes)
    return view(input, shape[:dim] + sizes + shape[dim + 1 :])


def ravel(input: TensorState):
    """Return all elements in one dim, row by row."""
    data = input._data
    if data.__class__ is ndarray and not data.flags.c_contiguous:
        input = clone(input, memory_format=contiguous_format)
    return view(input, (-1,))


@op(name="squeeze_all", node="SqueezeBackward0", view=True, complex="linear")
def squeezed(xp, input: Array):
    """Drop all dims of size 1."""
    return input.squeeze()


squeezed.derivative("input", formula="grad in the shape of input")(lambda grad, input_shape: grad.reshape(input_shape))


@op(name="squeeze", node="SqueezeBackward1", view=True, complex="linear")
def squeezed_dim(xp, input: Array, dim: int):
    """Drop one dim if its size is 1."""
    dim = normalise_dim(dim, input.ndim)
    return input.squeeze(dim) if input.ndim and input.shape[dim] == 1 else input[...]


squeezed_dim.derivative("input", formula="grad in the shape of input")(
    lambda grad, input_shape: grad.reshape(input_shape)
)


@op(name="squeeze_dims", node="SqueezeBackward2", view=True, complex="linear")
def squeezed_dims(xp, input: Array, dim: tuple):
    """Drop those of the named dims whose size is 1."""
    dims = normalise_dims(dim, input.ndim)
    return input.squeeze(tuple(one for one in dims if input.ndim and input.shape[one] == 1))


squeezed_dims.derivative("input", formula="grad in the shape of input")(
    lambda grad, input_shape: grad.reshape(input_shape)
)


def squeeze(input: TensorState, dim: int | Sequence[int] | None = None, *dims):
    """Drop the dims of size 1: all of them, or those among `dim`, an int or several."""
    if dims:
        return squeezed_dims(input, (dim, *dims))
    if dim is None:
        return squeezed(input)
    return squeezed_dims(input, tuple(dim)) if isinstance(dim, (tuple, list)) else squeezed_dim(input, dim)


@op(view=True, complex="linear")
def unsqueeze(xp, input: Array, dim: int):
    """Add a dim of size 1 before `dim`; -1 adds it at the end."""
    shape, dim = input.shape, normalise_dim(dim, input.ndim + 1)
    longer = (*shape[:dim], 1, *shape[dim:])
    if row_major(input):
        return input.reshape(longer)
    stride = input.strides[dim] * shape[dim] if dim < input.ndim else input.itemsize
    return strided(input, longer, (*input.strides[:dim], stride, *input.strides[dim:]))


unsqueeze.derivative("input", formula="grad without the dim")(lambda grad, input_shape: grad.reshape(input_shape))


def _each(function: Callable):
    """Let a function of one tensor take several, or a sequence of them, and then return a tuple."""

    def on_all(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
            return function(tensors[0])
        return tuple(function(tensor) for tensor in sizes_given(tensors))

    on_all.__name__ = on_all.__qualname__ = function.__name__
    on_all.__doc__ = function.__doc__
    return on_all


@_each
def atleast_1d(input: TensorState):
    """Return the tensor, or each of several, with at least one dim."""
    return input if input._data.ndim else reshape(input, 1)


@_each
def atleast_2d(input: TensorState):
    """Return the tensor, or each of several, with at least two dims, added in front."""
    if input._data.ndim == 0:
        return reshape(input, 1, 1)
    return unsqueeze(input, 0) if input._data.ndim == 1 else input


@_each
def atleast_3d(input: TensorState):
    """Return the tensor, or each of several, with at least three dims: a vector in the middle, a matrix in front."""
    ndim = input._data.ndim
    if ndim == 0:
        return reshape(input, 1, 1, 1)
    if ndim == 1:
        return unsqueeze(unsqueeze(input, 0), -1)
    return unsqueeze(input, -1) if ndim == 2 else input
