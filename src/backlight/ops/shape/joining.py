"""Join tensors: cat, stack and functions that use them."""

from collections.abc import Sequence
from itertools import combinations as chosen
from itertools import combinations_with_replacement as chosen_again
from math import comb

import numpy as np

from backlight.codegen.declaration import Array, Arrays, op
from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ShapeError, ValueProblem
from backlight.kernels.memory_order import LAYOUTS, row_major
from backlight.ops.dims import normalise_dim
from backlight.ops.elementwise.copying import cast
from backlight.ops.indexing.index_selection import take
from backlight.ops.shape.expanding import expand
from backlight.ops.shape.padding import constant_pad_nd
from backlight.ops.shape.reshaping import atleast_1d, atleast_2d, atleast_3d, flatten, reshape
from backlight.ops.type_promotion import promote_types
from backlight.sizes import Shape, check_work, sizes_given, storage_errors
from backlight.system.user_warnings import warn_once

__all__ = [
    "_chunk_cat",
    "block_diag",
    "cartesian_prod",
    "cat",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "row_stack",
    "stack",
    "vstack",
]


def alike(name: str, tensors: Sequence[TensorState]) -> tuple:
    """Return tensors cast to their common dtype.

    Raises:
        TypeError: `tensors` is no sequence, or one of its elements no tensor.
    """
    if isinstance(tensors, TensorState) or not isinstance(tensors, (tuple, list)):
        raise ArgumentError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    common, mixed = None, False
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorState):
            raise ArgumentError(f"expected Tensor as element {place} in argument 0, but got {type(tensor).__name__}")
        kind = tensor._data.dtype
        if common is None:
            common = kind
        elif kind is not common and kind != common:
            common, mixed = promote_types(common, kind), True
    return tuple(cast(tensor, common) for tensor in tensors) if mixed else tensors


@op(name="cat", tangent="linear", complex="linear", layout="joined")
def joined(xp, tensors: Arrays, dim: int):
    """The tensors end to end along a dim."""
    try:
        out = xp.concatenate(tensors, axis=dim)
    except ValueError:
        dim = _check_joined(tensors, dim)
        out = xp.concatenate([array for array in tensors if array.shape != (0,)], axis=dim)
    return out if out.flags.c_contiguous else xp.ascontiguousarray(out)


def _check_joined(arrays: Sequence[Array], dim: int) -> int:
    """Return the dim counted from the start; empty vectors are left out of the comparison, as PyTorch does."""
    for place, array in enumerate(arrays):
        if not array.ndim:
            raise ShapeError(f"zero-dimensional tensor (at position {place}) cannot be concatenated; see stack")
    counted = [array for array in arrays if array.shape != (0,)] or arrays
    first = counted[0].shape
    dim = normalise_dim(dim, len(first))
    for place, array in enumerate(arrays):
        shape = array.shape
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for d, (size, expected) in enumerate(zip(shape, first)):
            if size != expected and d != dim:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size "
                    f"{size} for tensor number {place} in the list."
                )
    return dim


@joined.derivative("tensors", formula="for each tensor its part of grad")
def joined_tensors(grad: Array, tensors_shape: Sequence[Shape], dim: int, needs: tuple[bool, ...], ops):
    dim, start, grads = dim % grad.ndim, 0, []
    for shape, needed in zip(tensors_shape, needs):
        if shape == (0,):
            grads.append(ops.new_zeros(grad, shape) if needed else None)
            continue
        grads.append(ops.slice(grad, dim, start, start + shape[dim]) if needed else None)
        start += shape[dim]
    return grads


@public_function
def cat(tensors: Sequence[TensorState], dim: int = 0, *, axis: int | None = None):
    """Join tensors end to end along a dim; all other sizes must agree.

    Raises:
        RuntimeError: sizes differ, or a tensor has no dims.
        ValueError: there are no tensors.
    """
    tensors = alike("cat", tensors)
    if not tensors:
        raise ValueProblem("torch.cat(): expected a non-empty list of Tensors")
    return joined(tensors, dim if axis is None else axis)


@public_function
def concat(tensors: Sequence[TensorState], dim: int = 0, *, axis: int | None = None):
    """Join tensors end to end along a dim; another name of `cat`."""
    return cat(tensors, dim, axis=axis)


@public_function
def concatenate(tensors: Sequence[TensorState], dim: int = 0, *, axis: int | None = None):
    """Join tensors end to end along a dim; another name of `cat`."""
    return cat(tensors, dim, axis=axis)


@op(name="stack", tangent="linear", complex="linear")
def stacked(xp, tensors: Arrays, dim: int):
    """The tensors side by side along a new dim."""
    shape = tensors[0].shape
    dim = normalise_dim(dim, len(shape) + 1)
    for place, array in enumerate(tensors):
        if array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(array.shape)} "
                f"at entry {place}"
            )
    longer = (*shape[:dim], len(tensors), *shape[dim:])
    if dim < len(shape):  # as PyTorch does, so that the result may lie channels last, too
        joined_there = xp.concatenate(tensors, axis=dim)
        if not row_major(joined_there, *tensors):
            joined_there = LAYOUTS["joined"](joined_there, *tensors)
        return joined_there.reshape(longer)
    out = xp.concatenate([array[..., None] for array in tensors], axis=dim)
    return out if out.flags.c_contiguous else xp.ascontiguousarray(out)


@stacked.derivative("tensors", formula="for each tensor its slice of grad")
def stacked_tensors(grad: Array, dim: int, needs: tuple[bool, ...], ops):
    return [ops.select(grad, dim, place) if needed else None for place, needed in enumerate(needs)]


@public_function
def stack(tensors: Sequence[TensorState], dim: int = 0):
    """Join tensors of equal size along a new dim.

    Raises:
        RuntimeError: sizes differ, or there are no tensors.
    """
    tensors = alike("stack", tensors)
    if not tensors:
        raise ShapeError("stack expects a non-empty TensorList; got no tensors")
    return stacked(tensors, dim)


def _some(name: str, tensors: Sequence[TensorState]) -> list:
    """Return a sequence of tensors as a list, or raise PyTorch's error for an empty one."""
    if isinstance(tensors, TensorState):
        raise ArgumentError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    if not tensors:
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return list(tensors)


def hstack(tensors: Sequence[TensorState]):
    """Join tensors along their second dim; vectors end to end."""
    tensors = atleast_1d(_some("hstack", tensors))
    return cat(tensors, 0 if tensors and tensors[0]._data.ndim == 1 else 1)


def vstack(tensors: Sequence[TensorState]):
    """Join tensors along their first dim; vectors as rows."""
    return cat(atleast_2d(_some("vstack", tensors)))


def row_stack(tensors: Sequence[TensorState]):
    """Join tensors along their first dim; another name of `vstack`."""
    return vstack(tensors)


def dstack(tensors: Sequence[TensorState]):
    """Join tensors along their third dim."""
    return cat(atleast_3d(_some("dstack", tensors)), 2)


def column_stack(tensors: Sequence[TensorState]):
    """Join tensors along their second dim; vectors as columns."""
    if not len(tensors):
        raise ShapeError("column_stack expects a non-empty TensorList")
    columns = [reshape(one, one._data.size, 1) if one._data.ndim < 2 else one for one in tensors]
    return cat(columns, 1)


def _chunk_cat(tensors: Sequence[TensorState], dim: int, num_chunks: int):
    """Cut each tensor into chunks along a dim, the last ones filled up with zeros, and join the chunks of all.

    Returns:
        A tensor of shape (*sizes before dim, num_chunks, elements of all tensors in one chunk).

    Raises:
        RuntimeError: there are no tensors or chunks, a tensor is empty or of another dtype, or sizes before dim differ.
    """
    arrays = [one._data for one in tensors]
    if num_chunks < 1:
        raise ShapeError(f"_chunk_cat expects positive num_chunks; got {num_chunks}")
    if not arrays:
        raise ShapeError("_chunk_cat expects a non-empty input tensor list")
    for array in arrays:
        if not array.size:
            raise ShapeError(f"_chunk_cat expects non-empty tensor; got one of shape {list(array.shape)}")
        if array.dtype != arrays[0].dtype:
            raise ShapeError("_chunk_cat expects all input tensors with the same dtype; convert them with .to()")
    if len({array.ndim for array in arrays}) == 1:
        dim = normalise_dim(dim, arrays[0].ndim)
    elif dim < 0:
        raise ShapeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    elif any(dim >= array.ndim for array in arrays):
        raise ShapeError("_chunk_cat expects dim < ndim for all input tensors")
    if len({array.shape[:dim] for array in arrays}) > 1:
        raise ShapeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    parts = []
    for one, array in zip(tensors, arrays):
        missing = -array.shape[dim] % num_chunks
        whole = constant_pad_nd(one, (0, 0) * (array.ndim - dim - 1) + (0, missing)) if missing else one
        parts.append(reshape(whole, *array.shape[:dim], num_chunks, -1))
    return cat(parts, dim + 1)


@op(name="block_diag", tangent="linear", complex="linear")
def blocks(xp, tensors: Arrays):
    """A matrix with the tensors along its diagonal and zeros elsewhere."""
    shapes = [block_shape(array.shape) for array in tensors]
    out = xp.zeros((sum(rows for rows, _ in shapes), sum(columns for _, columns in shapes)), tensors[0].dtype)
    row = column = 0
    for array, (rows, columns) in zip(tensors, shapes):
        out[row : row + rows, column : column + columns] = array
        row, column = row + rows, column + columns
    return out


def block_shape(shape: Sequence[int]) -> tuple:
    """Return the rows and columns of a block: a vector is a row."""
    return (1,) * (2 - len(shape)) + tuple(shape)


@blocks.derivative("tensors", formula="for each tensor its block of grad")
def blocks_tensors(grad: Array, tensors_shape: Sequence[Shape], needs: tuple[bool, ...], ops):
    grads, row, column = [], 0, 0
    for shape, needed in zip(tensors_shape, needs):
        rows, columns = block_shape(shape)
        if needed:
            part = ops.slice(ops.slice(grad, 0, row, row + rows), 1, column, column + columns)
            grads.append(part.reshape(tuple(shape)))
        else:
            grads.append(None)
        row, column = row + rows, column + columns
    return grads


def block_diag(*tensors):
    """Return a matrix with the tensors along its diagonal and zeros elsewhere; vectors count as rows.

    Raises:
        RuntimeError: a tensor has more than two dims.
    """
    for place, tensor in enumerate(tensors):
        if tensor._data.ndim > 2:
            raise ShapeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {place} has "
                f"{tensor._data.ndim} dimensions"
            )
    if not tensors:
        return wrap(np.zeros((1, 0), np.float32))
    return blocks(alike("block_diag", tensors))


def meshgrid(*tensors, indexing: str | None = None):
    """Return for each of several vectors a view that repeats it over the grid of all.

    Args:
        indexing: "ij" for rows of the first vector, "xy" for columns of it.

    Raises:
        RuntimeError: a tensor has more than one dim, or the dtypes differ.
    """
    tensors = sizes_given(tensors)
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=3
        )
        indexing = "ij"
    if not isinstance(indexing, str):
        raise ArgumentError(f"meshgrid(): argument 'indexing' must be str, not {type(indexing).__name__}")
    if indexing not in ("ij", "xy"):
        raise ShapeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise ShapeError("meshgrid expects a non-empty TensorList; got no tensors")
    for tensor in tensors:
        if tensor._data.ndim > 1:
            raise ShapeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor}")
        if tensor._data.dtype != tensors[0]._data.dtype:
            raise ShapeError("meshgrid expects all tensors to have the same dtype; convert them with .to(…)")
    swapped = indexing == "xy" and len(tensors) > 1
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swapped else tensors
    shape = tuple(tensor._data.size for tensor in ordered)
    grids = [
        expand(reshape(tensor, (1,) * place + (-1,) + (1,) * (len(shape) - place - 1)), shape)
        for place, tensor in enumerate(ordered)
    ]
    return (grids[1], grids[0], *grids[2:]) if swapped else tuple(grids)


def _check_vector(tensor: TensorState) -> None:
    if tensor._data.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(tensor._data.shape)}; see reshape(-1)")


def cartesian_prod(*tensors):
    """Return all combinations of one element from each vector, one a row.

    Raises:
        RuntimeError: a tensor is no vector.
    """
    tensors = sizes_given(tensors)
    for tensor in tensors:
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in meshgrid(*tensors, indexing="ij")], 1)


def _count_of_rows(size: int, r: int, with_replacement: bool) -> int:
    """Return how many combinations there are, or so many that there are too many."""
    size = size + r - 1 if with_replacement and size else size
    fewer = min(r, size - r)
    return 0 if fewer < 0 else 2**64 if fewer > 64 and size > 2 * 64 else comb(size, fewer)


@storage_errors
def combinations(input: TensorState, r: int = 2, with_replacement: bool = False):
    """Return all combinations of `r` elements of a vector, in order, one a row.

    Raises:
        RuntimeError: the tensor is no vector, or `r` is negative.
    """
    _check_vector(input)
    if r < 0:
        raise ShapeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(np.empty(0, input._data.dtype))
    size, kind = input._data.size, input._data.dtype
    check_work((r,), kind)
    check_work((_count_of_rows(size, r, with_replacement), r), kind)
    rows = list((chosen_again if with_replacement else chosen)(range(input._data.size), r))
    return take(input, wrap(np.array(rows, np.int64).reshape(len(rows), r)))
