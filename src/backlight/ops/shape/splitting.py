"""One tensor made several views: split, chunk, unbind, tensor_split."""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, DimError, ShapeError, StorageError
from backlight.ops.dims import normalise_dim
from backlight.ops.indexing.slicing import at, sliced
from backlight.sizes import Shape

__all__ = [
    "chunk",
    "dsplit",
    "hsplit",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "vsplit",
]

MOST_PARTS = 2**24  # tensors of that many parts take more memory than there is
MOST_IN_VECTOR = 2**60  # of pointers


def _parts(input: Array, sizes: Sequence[int], dim: int) -> list:
    """Return slices of the given lengths, one behind the other."""
    parts, start = [], 0
    for size in sizes:
        parts.append(input[at(dim, slice(start, start + size))])
        start += size
    return parts


def check_count(count: int) -> None:
    """Raise PyTorch's error for more parts than memory holds tensors, before the first is made."""
    if count >= MOST_IN_VECTOR:
        raise StorageError(f"cannot create std::vector larger than max_size(); {count} parts are too many")
    if count > MOST_PARTS:
        raise StorageError(f"std::bad_alloc; {count} parts are too many, at most {MOST_PARTS} are made")


def equal_sizes(length: int, size: int) -> list[int]:
    """Return the lengths of parts of `size` and a rest.

    Raises:
        RuntimeError: there would be too many of them.
    """
    if size == 0:
        return [0]
    if length > MOST_PARTS:
        check_count(-(-length // size))
    return [min(size, length - start) for start in range(0, length, size)] or [0]


def joined_gradients(grads: Sequence[Array | None], sizes: Sequence[int], input_shape: Sequence[int], dim: int, ops):
    """Return the gradient for a tensor from those of its parts; a part without one counts as zeros."""
    present = next(grad for grad in grads if grad is not None)
    shapes = [(*input_shape[:dim], size, *input_shape[dim + 1 :]) for size in sizes]
    return ops.cat([ops.new_zeros(present, shape) if grad is None else grad for grad, shape in zip(grads, shapes)], dim)


@op(name="split", outputs="many", view=True, complex="linear")
def split_evenly(xp, input: Array, split_size: int, dim: int):
    """Views of `split_size` slices each along `dim`, the last perhaps of fewer."""
    return _parts(input, equal_sizes(input.shape[dim], split_size), dim)


@op(name="split_with_sizes", outputs="many", view=True, complex="linear")
def split_by_sizes(xp, input: Array, split_sizes: tuple, dim: int):
    """Views of as many slices along `dim` as each of `split_sizes` says."""
    return _parts(input, split_sizes, dim)


split_by_sizes.derivative("input", formula="the gradients of the parts, joined")(
    lambda grad, split_sizes, dim, input_shape, ops: joined_gradients(grad, split_sizes, input_shape, dim, ops)
)


@op(name="unsafe_split", outputs="many", tangent="linear", complex="linear")
def split_off(xp, input: Array, split_size: int, dim: int):
    """Copies of `split_size` slices each along `dim`, the last perhaps of fewer."""
    return [xp.array(part) for part in _parts(input, equal_sizes(input.shape[dim], split_size), dim)]


@split_evenly.derivative("input", formula="the gradients of the parts, joined")
@split_off.derivative("input", formula="the gradients of the parts, joined")
def equal_parts_input(grad: Sequence[Array | None], split_size: int, dim: int, input_shape: Shape, ops):
    return joined_gradients(grad, equal_sizes(input_shape[dim], split_size), input_shape, dim, ops)


def split(tensor: TensorState, split_size_or_sections: int | Sequence[int], dim: int = 0):
    """Split into views along `dim`: of one size each (the last may be smaller), or of the sizes in a list.

    Raises:
        RuntimeError: a size is negative, or sizes do not add up.
    """
    if not isinstance(split_size_or_sections, (int, TensorState)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    size = int(split_size_or_sections)
    return split_evenly(tensor, size, _checked_split("split", tensor, size, dim))


def _checked_split(name: str, tensor: TensorState, size: int, dim: int) -> int:
    shape = tensor._data.shape
    if not shape:
        raise ShapeError(f"{name} expects at least a 1-dimensional tensor; this one has no dims")
    dim = normalise_dim(dim, len(shape))
    if size < 0:
        raise ShapeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and shape[dim]:
        raise ShapeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {shape[dim]}")
    return dim


def split_with_sizes(input: TensorState, split_sizes: Sequence[int], dim: int = 0):
    """Split into views along `dim` of the given sizes, which must add up to the tensor's own.

    Raises:
        RuntimeError: a size is negative, or they do not add up.
    """
    if not isinstance(split_sizes, (tuple, list)):
        kind = type(split_sizes).__name__
        kind = f"numpy.{kind}" if isinstance(split_sizes, (np.ndarray, np.generic)) else kind
        raise ArgumentError(
            f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {kind}"
        )
    shape, sizes = input._data.shape, tuple(split_sizes)
    if not shape:
        raise ShapeError("split expects at least a 1-dimensional tensor; this one has no dims")
    dim = normalise_dim(dim, len(shape))
    if any(size < 0 for size in sizes):
        raise ShapeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[dim]:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(sizes)}"
        )
    return split_by_sizes(input, sizes, dim)


def chunk(input: TensorState, chunks: int, dim: int = 0):
    """Split into at most `chunks` views of equal size along `dim`; the last may be smaller.

    Raises:
        RuntimeError: `chunks` is not positive.
    """
    size, dim = _chunk_size(input, chunks, dim)
    if size == 0:
        check_count(chunks)
        return split_by_sizes(input, (0,) * chunks, dim)
    return split_evenly(input, size, dim)


def _chunk_size(input: TensorState, chunks: int, dim: int) -> tuple[int, int]:
    shape = input._data.shape
    if not shape:
        raise ShapeError("chunk expects at least a 1-dimensional tensor; this one has no dims")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = normalise_dim(dim, len(shape))
    return -(-shape[dim] // chunks), dim


def unsafe_split(input: TensorState, split_size: int, dim: int = 0):
    """Split into copies of one size each along `dim`, which may be written to."""
    return split_off(input, split_size, _checked_split("split", input, split_size, dim))


def unsafe_chunk(input: TensorState, chunks: int, dim: int = 0):
    """Split into at most `chunks` copies of equal size along `dim`, which may be written to."""
    size, dim = _chunk_size(input, chunks, dim)
    if size:
        return split_off(input, size, dim)
    check_count(chunks)
    return tuple([input.clone() for _ in range(chunks)])


@op(name="unbind", outputs="many", view=True, complex="linear")
def unbound(xp, input: Array, dim: int):
    """All slices along `dim`, as views without that dim."""
    return [input[at(dim, place)] for place in range(input.shape[dim])]


@unbound.derivative("input", formula="the gradients of the slices, stacked")
def unbound_input(grad: Sequence[Array | None], dim: int, input_shape: Shape, ops):
    present = next(one for one in grad if one is not None)
    shape = (*input_shape[:dim], *input_shape[dim + 1 :])
    return ops.stack([ops.new_zeros(present, shape) if one is None else one for one in grad], dim)


def unbind(input: TensorState, dim: int = 0):
    """Return all slices along `dim`, as views without that dim.

    Raises:
        IndexError: the tensor has no dims.
    """
    ndim = input._data.ndim
    dim = normalise_dim(dim, ndim)
    if not ndim:
        raise DimError(f"Dimension specified as {dim} but tensor has no dimensions")
    if input._data.shape[dim] > MOST_PARTS:
        check_count(input._data.shape[dim])
    return unbound(input, dim)


def tensor_split(input: TensorState, indices_or_sections: TensorState | int | Sequence[int], dim: int = 0):
    """Split into views along `dim`: a number of nearly equal ones, or at the given indices.

    Raises:
        RuntimeError: the number is not positive, or the tensor has no dims.
    """
    shape = input._data.shape
    if not shape:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = normalise_dim(dim, len(shape))
    if isinstance(indices_or_sections, TensorState):
        indices_or_sections = _numbers(indices_or_sections)
    if isinstance(indices_or_sections, (int, np.integer)):
        ends = _even_ends(shape[dim], indices_or_sections)
    else:
        ends = [*indices_or_sections, shape[dim]]
    parts, start = [], 0
    for end in ends:
        parts.append(sliced(input, dim, start, end))
        start = end
    return tuple(parts)


def _numbers(tensor: TensorState):
    data = tensor._data
    if data.dtype.kind != "i" or data.dtype.itemsize != 8:
        raise ShapeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{from_numpy_dtype(data.dtype).old_name}"
        )
    if data.ndim > 1:
        raise ShapeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {data.ndim} dims"
        )
    return data.tolist()


def _even_ends(length: int, sections: int) -> list[int]:
    if sections <= 0:
        raise ShapeError(f"number of sections must be larger than 0, got {sections}")
    check_count(sections)
    size, longer = divmod(length, sections)
    return [(place + 1) * size + min(place + 1, longer) for place in range(sections)]


def _split_along(name: str, input: TensorState, indices_or_sections: int | Sequence[int], dim: int, least: int):
    shape = input._data.shape
    if len(shape) < least:
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {len(shape)} "
            "dimensions!"
        )
    if isinstance(indices_or_sections, (int, np.integer)) and (
        indices_or_sections <= 0 or shape[dim] % indices_or_sections
    ):
        raise ShapeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {shape[dim]} is not "
            f"divisible by the split_size {indices_or_sections}!"
        )
    return tensor_split(input, indices_or_sections, dim)


def hsplit(input: TensorState, indices_or_sections: int | Sequence[int]):
    """Split into views along the second dim, of a vector along its only one: into equal ones, or at indices."""
    return _split_along("hsplit", input, indices_or_sections, 0 if input._data.ndim == 1 else 1, 1)


def vsplit(input: TensorState, indices_or_sections: int | Sequence[int]):
    """Split into views along the first dim: into equal ones, or at indices."""
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: TensorState, indices_or_sections: int | Sequence[int]):
    """Split into views along the third dim: into equal ones, or at indices."""
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


def unsafe_split_with_sizes(input: TensorState, split_sizes: Sequence[int], dim: int = 0):
    """Split into copies of the given sizes along `dim`, which may be written to."""
    return tuple([part.clone() for part in split_with_sizes(input, split_sizes, dim)])
