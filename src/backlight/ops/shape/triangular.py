"""Triangles and diagonals of matrices."""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.devices import require_cpu
from backlight.dtypes import dtype, int64, to_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError
from backlight.kernels.reduction.slices import triangle_kept
from backlight.layouts import require_strided
from backlight.ops.dims import normalise_dim
from backlight.ops.indexing.index_selection import INDEX_KINDS
from backlight.ops.indexing.slicing import diagonal
from backlight.ops.number_operands import no_bools, no_kernel
from backlight.ops.shape.reshaping import flatten
from backlight.sizes import require_memory, storage_errors

__all__ = ["diag", "diag_embed", "diagflat", "diagonal_copy", "trace", "tril", "tril_indices", "triu", "triu_indices"]


def lower_mask(shape: Sequence[int], offset: int) -> np.ndarray:
    """Return which places of a matrix lie on or below a diagonal."""
    return np.arange(shape[-1]) <= np.arange(shape[-2])[:, None] + offset


def _check_matrix(name: str, input: Array) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name}: input tensor must have at least 2 dimensions; this one has {input.ndim}")


@op(tangent="linear", complex="linear", layout="rows")
def tril(xp, input: Array, diagonal: int = 0):
    """Keep each matrix on and below a diagonal; zeros above it."""
    _check_matrix("tril", input)
    return triangle_kept(input, diagonal, False)


tril.derivative("input", formula="grad on and below the diagonal")(lambda grad, diagonal, ops: ops.tril(grad, diagonal))


@op(tangent="linear", complex="linear", layout="rows")
def triu(xp, input: Array, diagonal: int = 0):
    """Keep each matrix on and above a diagonal; zeros below it."""
    _check_matrix("triu", input)
    return triangle_kept(input, diagonal, True)


triu.derivative("input", formula="grad on and above the diagonal")(lambda grad, diagonal, ops: ops.triu(grad, diagonal))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device=None, layout=None):
    """Return rows and columns of the places on and below a diagonal, as two rows of one tensor."""
    return _indices(row, col, offset, dtype, device, layout, upper=False)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device=None, layout=None):
    """Return rows and columns of the places on and above a diagonal, as two rows of one tensor."""
    return _indices(row, col, offset - 1, dtype, device, layout, upper=True)


def _places(row: int, col: int, offset: int, upper: bool) -> int:
    """Return how many places of a matrix lie on or below a diagonal, or with `upper` above it."""
    first = min(max(-offset, 0), row)  # rows before this have none
    full_from = min(max(col - offset - 1, first), row)  # rows from this on have all
    starts, ends = first + offset + 1, full_from + offset
    below = (starts + ends) * (full_from - first) // 2 + (row - full_from) * col
    return row * col - below if upper else below


@storage_errors
def _indices(row: int, col: int, offset: int, dtype: dtype, device, layout, *, upper: bool):
    require_cpu(device)
    require_strided(layout)
    for name, size in (("row", row), ("col", col)):
        if size < 0:
            raise ShapeError(f"{name} must be non-negative, got{size}")
    kind = to_numpy_dtype(dtype) or np.dtype(np.int64)
    if kind not in INDEX_KINDS:
        name = f"tri{'u' if upper else 'l'}_indices"
        raise no_kernel(name, kind, "make them int64 and convert them")
    if upper:
        row = min(row, max(0, col - 1 - offset))  # the rows behind have no such places
    require_memory((2, _places(row, col, offset, upper)), kind)
    require_memory((row, col), np.dtype(bool))
    mask = lower_mask((row, col), offset)
    return wrap(np.stack(np.nonzero(~mask if upper else mask)).astype(kind))


@op(tangent="linear", complex="linear")
def diag_embed(xp, input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Matrices, in two new dims, with the last dim of `input` on a diagonal."""
    ndim = input.ndim + 1
    first, second = normalise_dim(dim1, ndim), normalise_dim(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not input.ndim:
        raise ShapeError("diag_embed needs at least one dim; see diagflat for a 0-d tensor")
    size = input.shape[-1] + abs(offset)
    out = xp.zeros((*input.shape[:-1], size, size), input.dtype)
    places = xp.arange(input.shape[-1])
    out[..., places + max(-offset, 0), places + max(offset, 0)] = input
    return xp.ascontiguousarray(xp.moveaxis(out, (-2, -1), (first, second)))


diag_embed.derivative("input", formula="the diagonal of grad")(
    lambda grad, offset, dim1, dim2, ops: ops.diagonal(grad, offset, dim1, dim2)
)


@op(node="DiagonalBackward0_copy", tangent="linear", complex="linear")
def diagonal_copy(xp, input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """The same as `diagonal`, copied."""
    return xp.array(diagonal.op.forward(xp, input, offset, dim1, dim2), order="C")


diagonal_copy.derivative("input", formula="grad on the diagonal, 0 elsewhere")(
    lambda grad, offset, dim1, dim2, input_shape, ops: ops.diagonal_backward(grad, input_shape, offset, dim1, dim2)
)


def diag(input: TensorState, diagonal: int = 0):
    """Return a copy of a matrix's diagonal, or a matrix with a vector on its diagonal.

    Raises:
        RuntimeError: the tensor is neither vector nor matrix.
    """
    ndim = input._data.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim == 2:
        return diagonal_copy(input, diagonal)
    raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D; see diagonal() and diag_embed() for more dims")


def diagflat(input: TensorState, offset: int = 0):
    """Return a matrix with all elements, row by row, on its diagonal."""
    return diag_embed(flatten(input), offset)


@op(tangent="linear", dtype_error=no_bools("trace"), complex="linear")
def trace(xp, input: Array):
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    kind = np.dtype(np.int64) if input.dtype.kind in "iub" else input.dtype
    wide = np.float32 if kind.itemsize == 2 else kind
    return xp.trace(input, dtype=wide).astype(kind)


trace.derivative("input", formula="grad on the diagonal, 0 elsewhere")(
    lambda grad, input_shape, ops: ops.diagonal_backward(ops.expand(grad, (min(input_shape),)), input_shape, 0, 0, 1)
)
