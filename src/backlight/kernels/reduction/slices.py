"""Slices along a dim: taken and added where an index names them, running sums, products and extremes.

NOTE [Adding where places repeat]
`np.add.at` has one fast path: flat positions into flat memory. `add_slices` brings sums over repeated slices to that
form.
"""

from collections.abc import Callable

import numpy as np

from backlight.kernels.native import native


@native
def slices_taken(input: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    """Return the slices along `dim` that an index names, 0 or more and below the size."""
    return np.take(input, index, axis=dim)


@native
def add_slices(out: np.ndarray, values: np.ndarray, index: np.ndarray, dim: int) -> None:
    """Add slices where the index says along `dim`, in place; places may repeat (NOTE [Adding where places repeat])."""
    rows, size = np.ascontiguousarray(np.moveaxis(out, dim, 0)), out.size // max(out.shape[dim], 1)
    positions = index.astype(np.int64)
    if size != 1:
        positions = (positions[:, None] * size + np.arange(size)).reshape(-1)
    np.add.at(rows.reshape(-1), positions, np.moveaxis(values, dim, 0).reshape(-1))
    if not np.may_share_memory(rows, out):
        out[...] = np.moveaxis(rows, 0, dim)


@native
def running_sum(x: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """Return running sums along `dim`, with `reverse` from the end."""
    return _running(np.add, x, dim, reverse)


@native
def running_product(x: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """Return running products along `dim`, with `reverse` from the end."""
    return _running(np.multiply, x, dim, reverse)


def _running(operation: Callable, x: np.ndarray, dim: int, reverse: bool):
    turn = (slice(None),) * dim + (slice(None, None, -1 if reverse else 1),)
    return operation.accumulate(x[turn], dim)[turn]


@native
def running_extreme(x: np.ndarray, dim: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return running maxima or minima along `dim`, and where each was found: the latest place among equals."""
    values = (np.maximum if largest else np.minimum).accumulate(x, dim)
    found = (x == values) | (x != x)  # NaN, once met, stays
    places = np.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - 1 - dim))
    return values, np.maximum.accumulate(np.where(found, places, 0), dim)


@native
def slices_turned(x: np.ndarray, dim: int) -> np.ndarray:
    """Return the slices along `dim` in reverse order."""
    return np.array(x[(slice(None),) * dim + (slice(None, None, -1),)], order="C")


@native
def triangle_kept(x: np.ndarray, offset: int, upper: bool) -> np.ndarray:
    """Return matrices with zeros where the column is beyond the row plus an offset, or with `upper` before it."""
    beyond = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    return np.where(beyond >= offset if upper else beyond <= offset, x, x.dtype.type(0))
