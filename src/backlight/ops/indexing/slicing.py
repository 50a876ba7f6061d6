"""Parts of a tensor along a dim, as views: select, slice, narrow, diagonal; and copies in which a part is replaced."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, ShapeError
from backlight.kernels.memory_order import strided
from backlight.ops.dims import normalise_dim
from backlight.sizes import Shape

__all__ = ["diagonal", "diagonal_scatter", "narrow", "narrow_copy", "select", "select_scatter", "slice_scatter"]


def at(dim: int, index: int | slice) -> tuple:
    """Return NumPy's index for `index` along `dim` and everything along the others (always a view, never a scalar)."""
    return (slice(None),) * dim + (index, Ellipsis)


@op(view=True, complex="linear")
def select(xp, input: Array, dim: int, index: int):
    """The slice at one index along `dim`, without that dim."""
    if not input.ndim:
        raise DimError("select() cannot be applied to a 0-dim tensor.")
    dim = normalise_dim(dim, input.ndim)
    try:
        return input[at(dim, index)]
    except IndexError:
        raise DimError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        ) from None


select.derivative("input", formula="grad at the index, 0 elsewhere")(
    lambda grad, dim, index, input_shape, ops: ops.select_backward(grad, input_shape, dim, index)
)


@op(tangent="linear", complex="linear")
def select_backward(xp, grad_output: Array, input_sizes: tuple, dim: int, index: int):
    """Zeros with one slice of them replaced."""
    out = xp.zeros(input_sizes, grad_output.dtype)
    out[at(normalise_dim(dim, out.ndim), index)] = grad_output
    return out


select_backward.derivative("grad_output", formula="grad at the index")(
    lambda grad, dim, index, ops: ops.select(grad, dim, index)
)


@op(name="slice", view=True, complex="linear")
def sliced(xp, input: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1):
    """Every step-th slice from start to end along `dim`."""
    if step <= 0:
        raise ShapeError(f"slice step must be positive, got {step}: see flip()")
    if not input.ndim:
        raise DimError("slice() cannot be applied to a 0-dim tensor; it has one element: see unsqueeze()")
    return input[at(normalise_dim(dim, input.ndim), slice(start, end, step))]


sliced.derivative("input", formula="grad at the slices, 0 elsewhere")(
    lambda grad, dim, start, end, step, input_shape, ops: ops.slice_backward(grad, input_shape, dim, start, end, step)
)


@op(tangent="linear", complex="linear")
def slice_backward(xp, grad_output: Array, input_sizes: tuple, dim: int, start: int, end: int, step: int):
    """Zeros with some slices of them replaced."""
    out = xp.zeros(input_sizes, grad_output.dtype)
    out[at(normalise_dim(dim, out.ndim), slice(start, end, step))] = grad_output
    return out


slice_backward.derivative("grad_output", formula="grad at the slices")(
    lambda grad, dim, start, end, step, ops: ops.slice(grad, dim, start, end, step)
)


def narrow(input: TensorState, dim: int, start: TensorState | int, length: int):
    """Return a view of `length` slices along `dim`, from `start` on.

    Raises:
        RuntimeError: the tensor has no dims, or too few slices.
        IndexError: `start` lies outside.
    """
    dim, start = _checked_narrow(input, dim, start, length)
    return sliced(input, dim, start, start + length)


def _checked_narrow(input: TensorState, dim: int, start: float, length: int) -> tuple[int, int]:
    shape = input._data.shape
    if not shape:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.; give it a dim with unsqueeze(0)")
    if length < 0:
        raise ShapeError(f"narrow(): length must be non-negative.; got {length}")
    dim = normalise_dim(dim, len(shape))
    if isinstance(start, TensorState):
        if start._data.ndim or start._data.dtype.kind not in "iu":
            raise ShapeError("start must be an 0-dim integral Tensor.")
        start = int(start._data)
    size = shape[dim]
    if not -size <= start <= size:
        raise DimError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start


@op(node="NarrowCopyBackward0", tangent="linear", complex="linear", layout="rows")
def slice_copy(xp, input: Array, dim: int, start: int, end: int):
    """The slices from start to end along `dim`, copied."""
    return xp.array(input[at(dim, slice(start, end))])


slice_copy.derivative("input", formula="grad at the slices, 0 elsewhere")(
    lambda grad, dim, start, end, input_shape, ops: ops.slice_backward(grad, input_shape, dim, start, end, 1)
)


def narrow_copy(input: TensorState, dim: int, start: TensorState | int, length: int):
    """Return a copy of `length` slices along `dim`, from `start` on."""
    shape = input._data.shape
    if shape and dim >= len(shape):
        raise ShapeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.); "
            f"dim is {dim}, of {len(shape)} dims"
        )
    if shape and length < 0:
        raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]}).")
    dim, start = _checked_narrow(input, dim, start, length)
    return slice_copy(input, dim, start, start + length)


@op(view=True, complex="linear")
def diagonal(xp, input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """The diagonal of two dims, as a new last dim; `offset` counts diagonals above the main one."""
    first, second = _diagonal_dims(dim1, dim2, input.ndim)
    return _diagonal_view(input, offset, first, second)


def _diagonal_dims(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    first, second = normalise_dim(dim1, ndim), normalise_dim(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _diagonal_view(data: Array, offset: int, first: int, second: int):
    """Return a writable view of a diagonal (NumPy's own is read-only)."""
    data = np.moveaxis(data, (first, second), (-2, -1))
    data = data[..., max(-offset, 0) :, max(offset, 0) :]
    length = min(data.shape[-2:])
    strides = (*data.strides[:-2], data.strides[-2] + data.strides[-1])
    return strided(data, (*data.shape[:-2], length), strides)


diagonal.derivative("input", formula="grad on the diagonal, 0 elsewhere")(
    lambda grad, offset, dim1, dim2, input_shape, ops: ops.diagonal_backward(grad, input_shape, offset, dim1, dim2)
)


@op(tangent="linear", complex="linear")
def diagonal_backward(xp, grad_output: Array, input_sizes: tuple, offset: int, dim1: int, dim2: int):
    """Zeros with a diagonal replaced."""
    out = xp.zeros(input_sizes, grad_output.dtype)
    _diagonal_view(out, offset, *_diagonal_dims(dim1, dim2, out.ndim))[...] = grad_output
    return out


diagonal_backward.derivative("grad_output", formula="the diagonal of grad")(
    lambda grad, offset, dim1, dim2, ops: ops.diagonal(grad, offset, dim1, dim2)
)


def check_slice(source_shape: Sequence[int], slice_shape: Sequence[int]) -> None:
    if tuple(source_shape) != tuple(slice_shape):
        raise ShapeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(source_shape)}, slice size = {list(slice_shape)}"
        )


def _with_part(xp, input: Array, src: Array, part_of: Callable):
    """Return a copy of `input` in which a part, a view that `part_of` makes, holds `src`."""
    out = xp.array(input, order="C")
    part = part_of(out)
    check_slice(src.shape, part.shape)
    part[...] = src
    return out


@op(tangent="linear", complex="linear", layout="preserved")
def select_scatter(xp, input: Array, src: Array, dim: int, index: int):
    """`input` with the slice at one index along `dim` replaced by `src`."""
    return _with_part(xp, input, src, lambda out: select.op.forward(xp, out, dim, index))


select_scatter.derivative("input", formula="grad, 0 at the index")(
    lambda grad, src_shape, dim, index, ops: ops.select_scatter(grad, ops.new_zeros(grad, src_shape), dim, index)
)
select_scatter.derivative("src", formula="grad at the index")(
    lambda grad, dim, index, ops: ops.select(grad, dim, index)
)


@op(tangent="linear", complex="linear", layout="preserved")
def slice_scatter(
    xp, input: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
):
    """`input` with every step-th slice from start to end along `dim` replaced by `src`."""
    return _with_part(xp, input, src, lambda out: sliced.op.forward(xp, out, dim, start, end, step))


@slice_scatter.derivative("input", formula="grad, 0 at the slices")
def slice_scatter_input(grad: Array, src_shape: Shape, dim: int, start: int | None, end: int | None, step: int, ops):
    return ops.slice_scatter(grad, ops.new_zeros(grad, src_shape), dim, start, end, step)


slice_scatter.derivative("src", formula="grad at the slices")(
    lambda grad, dim, start, end, step, ops: ops.slice(grad, dim, start, end, step)
)


@op(tangent="linear", complex="linear", layout="preserved")
def diagonal_scatter(xp, input: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """`input` with a diagonal replaced by `src`."""
    return _with_part(xp, input, src, lambda out: diagonal.op.forward(xp, out, offset, dim1, dim2))


@diagonal_scatter.derivative("input", formula="grad, 0 on the diagonal")
def diagonal_scatter_input(grad: Array, src_shape: Shape, offset: int, dim1: int, dim2: int, ops):
    return ops.diagonal_scatter(grad, ops.new_zeros(grad, src_shape), offset, dim1, dim2)


diagonal_scatter.derivative("src", formula="the diagonal of grad")(
    lambda grad, offset, dim1, dim2, ops: ops.diagonal(grad, offset, dim1, dim2)
)
