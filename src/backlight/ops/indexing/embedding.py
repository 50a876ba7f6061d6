"""Rows of a table, looked up by number."""

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.dispatch.observation import begin_write, end_write
from backlight.dtypes import from_numpy_dtype
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState
from backlight.errors import DimError, GraphError, ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.reduction.sorting import sums_by_index
from backlight.kernels.sparse_array import SparseArray
from backlight.ops.indexing.index_selection import owned
from backlight.sizes import Shape

__all__ = ["embedding", "embedding_dense_backward"]


def _rows(xp, weight: Array, indices: Array) -> Array:
    """Return the rows that indices name; `take` would copy all of a table whose rows do not lie one after the other."""
    return xp.take(weight, indices, axis=0) if weight.flags.c_contiguous else xp.ascontiguousarray(weight[indices])


@op(tangent="linear")
def embedding(
    xp, weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
):
    """Return the rows of `weight` that `indices` name.

    Shapes: weight (n, dim), indices (…) -> (…, dim)

    Args:
        padding_idx: the row that gets no gradient; −1 for none.
        scale_grad_by_freq: divide each row's gradient by how often the row was taken.
        sparse: the gradient of `weight` is a sparse tensor, with an entry for each row taken.
    """
    check_indices(weight, indices)
    return _rows(xp, weight, indices)


@op(tangent="linear")
def embedding_dense_backward(
    xp, grad_output: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
):
    """Return a table of zeros with each gradient added at its row."""
    flat = xp.reshape(owned(indices), -1).astype(xp.int64, copy=False)
    rows = xp.ascontiguousarray(widened(grad_output)).reshape(flat.size, grad_output.shape[-1])
    if scale_grad_by_freq:
        rows = rows / xp.bincount(flat, minlength=num_weights)[flat][:, None].astype(rows.dtype)
    out = sums_by_index(rows, flat, num_weights)
    if padding_idx >= 0:
        out[padding_idx] = 0
    return rounded(out, grad_output.dtype)


@embedding_dense_backward.derivative("grad_output", formula="rows of grad, 0 for the padding row")
def embedding_dense_backward_grad_output(
    grad: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, ops
):
    return ops.weighted_rows(grad, indices, padding_idx, scale_grad_by_freq)


@op(node="IndexSelectBackward0", tangent="linear")
def weighted_rows(xp, weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool):
    """Rows as `embedding` takes them, each times what its gradient is multiplied with."""
    indices = owned(indices)
    out = _rows(xp, weight, indices)
    if scale_grad_by_freq:
        out = out / xp.bincount(xp.reshape(indices, -1))[indices][..., None].astype(out.dtype)
    if padding_idx >= 0:
        out = xp.where(xp.equal(indices, padding_idx)[..., None], out.dtype.type(0), out)
    return out


@op(node="SparseCooTensorWithDimsAndTensorsBackward0", tangent="linear")
def embedding_sparse_backward(xp, grad_output: Array, indices: Array, num_weights: int, padding_idx: int):
    """Return a sparse table with each gradient as an entry at its row."""
    flat = xp.reshape(owned(indices), (1, -1)).astype(xp.int64, copy=False)
    rows = grad_output.reshape(flat.size, grad_output.shape[-1])
    if padding_idx >= 0:
        taken = flat[0] != padding_idx
        flat, rows = flat[:, taken], rows[taken]
    return SparseArray(flat, rows, (num_weights, rows.shape[1]))


embedding_sparse_backward.derivative("grad_output", formula="rows of grad, 0 for the padding row")(
    lambda grad, indices, padding_idx, ops: ops.weighted_rows(ops.sparse_to_dense(grad), indices, padding_idx, False)
)


@weighted_rows.derivative("weight", formula="grad, added at the rows taken")
def weighted_rows_weight(
    grad: Array, indices: Array, weight_shape: Shape, padding_idx: int, scale_grad_by_freq: bool, ops
):
    return ops.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


@embedding.derivative("weight", formula="grad, added at the rows taken")
def embedding_weight(
    grad: Array, indices: Array, weight_shape: Shape, padding_idx: int, scale_grad_by_freq: bool, sparse: bool, ops
):
    if not sparse:
        return ops.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
    if scale_grad_by_freq:
        raise GraphError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return ops.embedding_sparse_backward(grad, indices, weight_shape[0], padding_idx)


def check_indices(weight: Array, indices: Array) -> None:
    """Raise PyTorch's error unless `indices` are integers that number rows of the 2-D `weight`.

    Raises:
        RuntimeError: `weight` is no matrix, or `indices` are no int64 or int32.
        IndexError: an index is negative or too large.
    """
    if weight.ndim != 2:
        raise ShapeError(f"'weight' must be 2-D; it has shape {list(weight.shape)}")
    if indices.dtype not in (np.int64, np.int32):
        name = from_numpy_dtype(indices.dtype).old_name
        raise ShapeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{name}Tensor instead (while checking arguments for embedding); convert it with .long()"
        )
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= weight.shape[0]:
            raise DimError(
                f"index out of range in self; the table has {weight.shape[0]} rows, and indices go from {low} to {high}"
            )


def shorten_rows(weight: TensorState, indices: TensorState, max_norm: float, norm_type: float = 2.0) -> None:
    """Shorten, in place, the rows of `weight` that are taken and longer than `max_norm`."""
    check_indices(weight._data, indices._data)
    taken = np.unique(indices._data)
    table = weight._data
    lengths = np.linalg.norm(widened(table[taken]), float(norm_type), axis=1)
    long = lengths > max_norm
    factors = (float(max_norm) / (lengths[long] + 1e-7)).astype(lengths.dtype)
    begin_write(weight, "embedding_renorm_", user_place(1))
    table[taken[long]] = (widened(table[taken[long]]) * factors[:, None]).astype(table.dtype)
    end_write(weight)
