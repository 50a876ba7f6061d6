"""Histograms with their edges: how many elements, or how much weight, lies in each bin."""

import math
from collections.abc import Sequence

import numpy as np

from backlight import return_types
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError, UnsupportedError
from backlight.sizes import require_memory, storage_errors


@storage_errors
def histogram(input: TensorState, bins, *, range=None, weight: TensorState | None = None, density=False):
    """Return how many elements lie in each bin, and the bins' edges. There is no derivative, as in PyTorch.

    Args:
        bins: how many equal bins there are, or a tensor of their edges.
        range: (least, greatest) of the edges; those of the elements by default.
        weight: what each element counts, 1 by default.
        density: divide so that the integral is 1.
    """
    data, numbers = np.asarray(input._data).reshape(-1, 1), None if weight is None else np.asarray(weight._data)
    if weight is not None and numbers.shape != input._data.shape:
        _refuse_weight(data.shape, numbers.shape)
    hist, edges = _counted(data, [bins], range, numbers if numbers is None else numbers.reshape(-1), density)
    return return_types.histogram(wrap(hist), wrap(edges[0]))


@storage_errors
def histogramdd(input: TensorState, bins, range=None, weight: TensorState | None = None, density=False):
    """Return how many points lie in each box of a grid, and the edges along each dim of the points.

    Args:
        bins: how many bins each dim has: one number for all, or a list; or a list of tensors of edges.
        range: least and greatest edge of each dim, one after the other; those of the points by default.
        weight: what each point counts, 1 by default.
        density: divide so that the integral is 1.

    Shapes: input (…, dims) -> (bins of each dim), and a tuple of edges
    """
    data = np.asarray(input._data)
    if data.ndim < 2:
        raise ShapeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {data.ndim}")
    dims = data.shape[-1]
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(bins) != dims:
        raise ShapeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.; got "
            f"{len(bins)} for {dims}"
        )
    if range is not None and len(range) != 2 * dims:
        raise ShapeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(range)}"
        )
    numbers = None if weight is None else np.asarray(weight._data)
    if weight is not None and numbers.shape != data.shape[:-1]:
        _refuse_weight(data.shape, numbers.shape)
    numbers = numbers if numbers is None else numbers.reshape(-1)
    hist, edges = _counted(data.reshape(-1, dims), bins, range, numbers, density)
    return return_types.histogramdd(wrap(hist), tuple(map(wrap, edges)))


def _refuse_weight(points: tuple, weights: tuple) -> None:
    raise ShapeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
        f"its innermost dimension, but got input with shape {list(points)} and weight with shape {list(weights)}"
    )


def _check_bins(bins, kind: np.dtype, dim: int) -> None:
    if bins._data.dtype != kind:
        names = [from_numpy_dtype(one).old_name.lower() for one in (kind, bins._data.dtype)]
        raise ShapeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{names[0]} and bins for dimension {dim} with dtype {names[1]}"
        )
    dims = bins._data.ndim
    if dims != 1:
        raise ShapeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {dims} dimensions in the bins tensor "
            f"for dimension {dim}"
        )


def _counted(
    points: np.ndarray, bins: list, limits: Sequence[float] | None, weights: np.ndarray | None, density: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the counts of points (n, dims) in a grid, in their dtype, and the edges of each dim."""
    kind = points.dtype
    if kind not in (np.float32, np.float64):
        raise UnsupportedError(f"\"histogramdd\" not implemented for '{from_numpy_dtype(kind).old_name}'")
    for dim, one in enumerate(bins):
        if isinstance(one, TensorState):
            _check_bins(one, kind, dim)
    shape = [one if isinstance(one, int) else one._data.size for one in bins]
    for one in shape:
        require_memory((max(one, 0) + 1,), kind)
    require_memory(shape, kind)
    edges = [_edges(one, points[:, dim], limits, dim) for dim, one in enumerate(bins)]
    inside, places = np.ones(len(points), bool), []
    for dim, borders in enumerate(edges):
        column = points[:, dim]
        inside &= (column >= borders[0]) & (column <= borders[-1])
        place = np.searchsorted(borders, column, side="right") - 1
        places.append(np.where(column == borders[-1], len(borders) - 2, place))  # the last bin holds its upper edge
    shape = tuple(len(borders) - 1 for borders in edges)
    flat = np.ravel_multi_index([place[inside] for place in places], shape)
    counts = np.bincount(flat, None if weights is None else weights[inside].astype(np.float64), math.prod(shape))
    hist = counts.astype(kind).reshape(shape)
    if density:
        hist /= hist.sum()
        for dim, borders in enumerate(edges):
            hist /= np.diff(borders).reshape([-1 if one == dim else 1 for one in range(len(edges))])
    return hist, edges


def _edges(bins: TensorState | int, column: np.ndarray, limits: Sequence[float] | None, dim: int) -> np.ndarray:
    """Return the edges of one dim, or raise PyTorch's error for bins that cannot be."""
    if isinstance(bins, TensorState):
        return np.asarray(bins._data).astype(column.dtype)
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    low, high = limits[2 * dim : 2 * dim + 2] if limits is not None else (0, 0)
    if limits is None and column.size:
        low, high = column.min(), column.max()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ShapeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
    if low > high:
        raise ShapeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1).astype(column.dtype)
