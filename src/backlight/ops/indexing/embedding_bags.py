"""Bags of embeddings: rows of a table, looked up by number and combined bag by bag."""

import warnings

import numpy as np

from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError, UnsupportedError, ValueProblem
from backlight.kernels.half_precision import is_half
from backlight.ops.elementwise.copying import cast
from backlight.ops.indexing.embedding import embedding, shorten_rows
from backlight.ops.indexing.index_selection import index_add, owned
from backlight.ops.linalg.matrix_products import big_name
from backlight.ops.type_promotion import is_float

SWAPPED = (
    "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
    "deprecated, and should now be `embedding_bag(input, weight, ...)`."
)


@composite_function
def embedding_bag(
    input: TensorState,
    weight: TensorState,
    offsets: TensorState | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: TensorState | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
):
    """Return the sum, mean or maximum of the rows of `weight` that each bag of numbers names.

    Shapes: input (bags, size), or (n,) with offsets (bags,); weight (rows, dim) -> (bags, dim)

    Args:
        offsets: where each bag starts in a 1-D input.
        max_norm, norm_type, scale_grad_by_freq, sparse: as `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each number, in the shape of the input; for sums only.
        include_last_offset: whether offsets end with the length of the input.
        padding_idx: a row that counts for nothing.

    Raises:
        ValueError: the shapes or the mode do not fit.
        RuntimeError: the offsets do not start at 0, or an index is out of range.
    """
    if weight._data.dtype == np.int64 and is_float(input._data.dtype):
        warnings.warn(SWAPPED, stacklevel=2)
        input, weight = weight, input
    _check(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    kinds = [one._data.dtype for one in (input, offsets) if one is not None]
    _check_kinds(max(kinds, key=is_float), weight._data.dtype, per_sample_weights)
    indices, bag, count = bags_of(input._data, None if offsets is None else offsets._data, include_last_offset)
    _check_range(indices, weight._data.shape[0])
    if max_norm is not None:
        shorten_rows(weight, input, max_norm, norm_type)
    rows = weight._data.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ShapeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
        )
    padding = -1 if padding_idx is None else padding_idx % rows
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape((-1,))
    if padding >= 0:
        counted = np.flatnonzero(indices != padding)
        indices, bag = indices[counted], bag[counted]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.index_select(0, wrap(counted))
    found, kind = embedding(weight, wrap(indices), padding, scale_grad_by_freq, sparse), weight.dtype
    found = cast(found, np.dtype(np.float32)) if is_half(found._data) else found
    if per_sample_weights is not None:
        found = found * per_sample_weights.reshape((-1, 1))
    if mode == "max":
        return _maxima(found, bag, count).to(kind)
    total = index_add(wrap(np.zeros((count, weight._data.shape[1]), found._data.dtype)), 0, wrap(bag), found)
    if mode == "sum":
        return total.to(kind)
    sizes = np.maximum(np.bincount(bag, minlength=count), 1)
    return (total / wrap(sizes.astype(total._data.dtype)[:, None])).to(kind)


def _check_kinds(indices: np.dtype, weight: np.dtype, per_sample_weights: TensorState | None) -> None:
    start, end = "Expected tensor for argument #1", "(while checking arguments for embedding_bag)"
    if indices not in (np.int64, np.int32):
        raise ShapeError(
            f"{start} 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{from_numpy_dtype(indices).old_name}Tensor instead {end}"
        )
    if per_sample_weights is not None and per_sample_weights._data.dtype != weight:
        own, other = (from_numpy_dtype(one).old_name for one in (weight, per_sample_weights._data.dtype))
        raise ShapeError(
            f"{start} 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
            f"torch.{own}Tensor does not equal torch.{other}Tensor {end}"
        )


def bags_of(indices: np.ndarray, offsets: np.ndarray | None, include_last: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Return all numbers in a row, the bag of each, and how many bags there are."""
    if offsets is None:
        count, size = indices.shape
        return indices.reshape(-1), np.repeat(np.arange(count), size), count
    offsets = owned(offsets)
    if offsets.size and offsets[0] != 0:
        raise ShapeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {offsets[0]}"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise ShapeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of {offsets[-1]}"
        )
    ends = offsets[1:] if include_last else np.append(offsets[1:], indices.size)
    sizes = ends - offsets[: len(ends)]
    return indices[: int(sizes.sum())], np.repeat(np.arange(len(sizes)), sizes), len(sizes)


def _maxima(rows: TensorState, bag: np.ndarray, count: int):
    """Return the largest row elements in each bag; 0 where a bag is empty."""
    data = rows._data
    if not len(bag):
        return wrap(np.zeros((count, data.shape[1]), data.dtype))
    places = places_of_maxima(data, bag, count)
    empty = np.bincount(bag, minlength=count) == 0
    return rows.gather(0, wrap(places)).masked_fill(wrap(empty[:, None]), 0.0)


def places_of_maxima(rows: np.ndarray, bag: np.ndarray, count: int) -> np.ndarray:
    """Return, for each bag and column, which row has the largest element; 0 where a bag is empty."""
    places = np.zeros((count, rows.shape[1]), np.int64)
    present = np.unique(bag)
    starts = np.searchsorted(bag, present)
    for number, start, end in zip(present.tolist(), starts.tolist(), [*starts[1:].tolist(), len(bag)]):
        places[number] = start + rows[start:end].argmax(0)
    return places


def _check(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights) -> None:
    dims = input._data.ndim
    if per_sample_weights is not None and per_sample_weights._data.shape != input._data.shape:
        raise ValueProblem(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight._data.ndim != 2:
        raise ValueProblem(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight._data.ndim}")
    if not is_float(weight._data.dtype):
        raise ShapeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got torch.{big_name(weight._data.dtype)}Tensor instead (while checking arguments for "
            "embedding_bag); convert it with .float()"
        )
    if dims == 2 and offsets is not None:
        raise ValueProblem(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if dims == 1 and (offsets is None or offsets._data.ndim != 1):
        raise ValueProblem("offsets has to be a 1D Tensor" + (" but got None" if offsets is None else ""))
    if dims not in (1, 2):
        raise ValueProblem(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {dims}")
    if mode not in ("sum", "mean", "max"):
        raise ValueProblem(f"mode has to be one of sum, mean or max; got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueProblem("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueProblem("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise UnsupportedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )


def _check_range(indices: np.ndarray, rows: int) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices >= rows))
    if wrong.size:
        raise ShapeError(
            f"Index {wrong[0]} of input takes value {indices[wrong[0]]} which is not in the valid range [0, {rows})"
        )
