"""COO tensors made, read and converted: entries by a pattern, values, dense copies, coalescing, permuted dims.

The derivative of an entry is the gradient at its coordinates. A pattern is a sparse tensor whose values do not matter.
"""

from collections.abc import Sequence

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.errors import ShapeError
from backlight.kernels.sparse_array import SparseArray, is_sparse, masked


@op(node="SparseCooTensorWithDimsAndTensorsBackward0", tangent="linear")
def sparse_entries(xp, values: Array, pattern: Array):
    """A sparse tensor of these values at the entries of a pattern."""
    return pattern.with_values(values)


sparse_entries.derivative("values", formula="grad at the entries")(
    lambda grad, pattern, ops: ops.values_at_entries(grad, pattern)
)


@op(tangent="linear")
def values_at_entries(xp, input: Array, pattern: Array):
    """The elements of a dense or sparse tensor where a pattern has entries."""
    return masked(input, pattern).values


values_at_entries.derivative("input", formula="grad at the entries, 0 elsewhere")(
    lambda grad, input, pattern, ops: ops.in_layout_of(ops.sparse_entries(grad, pattern), input)
)


@op(node="ValuesBackward0", tangent="linear")
def entry_values(xp, input: Array):
    """The values of a sparse tensor."""
    return input.values


entry_values.derivative("input", formula="grad at the entries")(
    lambda grad, input, ops: ops.sparse_entries(grad, input)
)


@op(node="SparseMaskBackward0", tangent="linear")
def sparse_mask(xp, input: Array, mask: Array):
    """The elements of a tensor at the entries of a mask, as a sparse tensor."""
    return masked(input, mask)


sparse_mask.derivative("input", formula="grad at the entries of the mask")(
    lambda grad, input, mask, ops: ops.in_layout_of(ops.sparse_mask(grad, mask), input)
)


@op(node="ToDenseBackward0", tangent="linear")
def in_layout_of(xp, input: Array, other: Array):
    """A sparse tensor as it is, or as a dense one if another is dense."""
    return input.to_dense() if is_sparse(input) and not is_sparse(other) else input


in_layout_of.derivative("input", formula="grad at the entries")(
    lambda grad, input, ops: ops.sparse_mask(grad, ops.coalesced_entries(input))
)


@op(node="ToDenseBackward0", tangent="linear")
def sparse_to_dense(xp, input: Array):
    """A sparse tensor as a dense one; a dense one as it is."""
    return input.to_dense() if is_sparse(input) else input


sparse_to_dense.derivative("input", formula="grad at the entries")(
    lambda grad, input, ops: ops.sparse_mask(grad, ops.coalesced_entries(input))
)


@op(node="ToSparseBackward0", tangent="linear")
def dense_to_sparse(xp, input: Array, sparse_dims: int):
    """The elements that are not 0, or the rows with such elements if there are fewer sparse dims than dims."""
    kept = input != 0
    if sparse_dims < input.ndim:
        kept = kept.any(axis=tuple(range(sparse_dims, input.ndim)))
    places = np.nonzero(kept) if sparse_dims else ()
    indices = np.array(places, np.int64).reshape(sparse_dims, -1 if sparse_dims else int(kept))
    values = input[places] if sparse_dims else np.array(input)[None][: int(kept)]
    return SparseArray(indices, values, input.shape, True)


dense_to_sparse.derivative("input", formula="grad")(lambda grad, ops: ops.sparse_to_dense(grad))


@op(node="CoalesceBackward0", tangent="linear")
def coalesced_entries(xp, input: Array):
    """The entries in order, those at the same coordinates summed."""
    return input.coalesce()


coalesced_entries.derivative("input", formula="grad")(lambda grad: grad)


@op(node="CloneBackward0", tangent="linear")
def sparse_clone(xp, input: Array):
    """A copy of a sparse tensor."""
    return input.copy()


sparse_clone.derivative("input", formula="grad")(lambda grad: grad)


@op(node="ToCopyBackward0", tangent="linear")
def sparse_cast(xp, input: Array, kind: np.dtype):
    """A tensor in another dtype."""
    return input.astype(kind)


sparse_cast.derivative("input", formula="grad, cast back")(
    lambda grad, input_dtype, ops: ops.sparse_cast(grad, input_dtype)
)


def _permuted(input: Array, dims: Sequence[int]) -> Array:
    if not is_sparse(input):
        return np.transpose(input, dims)
    sparse = len(input.indices)
    if any(dim >= sparse for dim in dims[:sparse]):
        raise ShapeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
            f"{sparse}, and the order {list(dims)}"
        )
    values = np.transpose(input.values, [0, *(dim - sparse + 1 for dim in dims[sparse:])])
    permuted = SparseArray(input.indices[list(dims[:sparse])], values, tuple(input.shape[dim] for dim in dims))
    permuted.coalesced = not len(values) or (input.coalesced and list(dims) == list(range(input.ndim)))
    return permuted


@op(node="PermuteBackward0", tangent="linear")
def sparse_permute(xp, input: Array, dims: Sequence[int]):
    """A tensor with its dims in another order; of a sparse one, sparse and dense dims stay apart."""
    return _permuted(input, dims)


sparse_permute.derivative("input", formula="grad, its dims in the old order")(
    lambda grad, dims, ops: ops.sparse_permute(grad, np.argsort(dims).tolist())
)


@op(node="TransposeBackward0", tangent="linear")
def sparse_transpose(xp, input: Array, dims: Sequence[int]):
    """The same where two dims are exchanged."""
    return _permuted(input, dims)


sparse_transpose.derivative("input", formula="grad, the dims exchanged back")(
    lambda grad, dims, ops: ops.sparse_transpose(grad, dims)
)


@op(node="TBackward0", tangent="linear")
def sparse_t(xp, input: Array):
    """The transpose of a matrix."""
    return _permuted(input, (1, 0))


sparse_t.derivative("input", formula="gradᵀ")(lambda grad, ops: ops.sparse_t(grad))


@op(node="SparseSumBackward0", tangent="linear")
def without_sparse_dims(xp, input: Array, dims: Sequence[int]):
    """The entries of a sparse tensor without some of its sparse dims: those that meet are summed."""
    kept = [dim for dim in range(input.ndim) if dim not in dims]
    places = input.indices[[dim for dim in kept if dim < len(input.indices)]]
    return SparseArray(places, input.values, tuple(input.shape[dim] for dim in kept)).coalesce()


@without_sparse_dims.derivative("input", formula="grad at the coordinates left")
def without_sparse_dims_input(grad: Array, input: Array, dims: Sequence[int], ops):
    return ops.sparse_along(grad, input, dims)


@op(tangent="linear")
def sparse_along(xp, input: Array, pattern: Array, dims: Sequence[int]):
    """The entries of a pattern, with the elements that a tensor without some of its dims has at their coordinates."""
    pattern, kept = pattern.coalesce(), [dim for dim in range(pattern.ndim) if dim not in dims]
    places = pattern.indices[[dim for dim in kept if dim < len(pattern.indices)]]
    projected = SparseArray(places, pattern.values, tuple(pattern.shape[dim] for dim in kept))
    return pattern.with_values(masked(input, projected).values)


sparse_along.derivative("input", formula="grad, summed along the dims left out")(
    lambda grad, dims, ops: ops.without_sparse_dims(grad, dims)
)


def selected(input: SparseArray, dim: int, rows: np.ndarray, keep: bool) -> tuple[np.ndarray, SparseArray]:
    """Return which entries lie at some coordinates of a sparse dim, and their pattern: for each coordinate, if kept.

    Args:
        keep: the dim stays, and numbers the coordinates; else there is one, and the dim goes.
    """
    places, indices = [], []
    for number, row in enumerate(rows.tolist()):
        found = np.flatnonzero(input.indices[dim] == row)
        moved = np.array(input.indices[:, found])
        moved[dim] = number
        places.append(found)
        indices.append(moved if keep else np.delete(moved, dim, 0))
    taken = np.concatenate(places) if places else np.zeros(0, np.int64)
    shape = list(input.shape)
    shape[dim : dim + 1] = [len(rows)] if keep else []
    coalesced = input.coalesced and (not keep or dim == 0 or len(rows) == 1)
    pattern = SparseArray(np.concatenate(indices, axis=1), input.values[taken], tuple(shape), coalesced)
    return taken, pattern


def joined(arrays: Sequence[SparseArray], dim: int) -> SparseArray:
    """Return sparse arrays, one after the other along a sparse dim."""
    indices, start = [], 0
    for array in arrays:
        moved = np.array(array.indices)
        moved[dim] += start
        indices.append(moved)
        start += array.shape[dim]
    shape = (*arrays[0].shape[:dim], start, *arrays[0].shape[dim + 1 :])
    values = np.concatenate([array.values for array in arrays])
    return SparseArray(np.concatenate(indices, axis=1), values, shape)
