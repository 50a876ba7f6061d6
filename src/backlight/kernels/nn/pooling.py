"""Windows reduced to one value each, an element of the kernel at a time: every step is one pass over all places."""

from collections.abc import Sequence
from math import prod

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.nn.patches import offsets, reach, unpadded
from backlight.kernels.nn.resampling import applied


def _padded(input: np.ndarray, windows, places: Sequence[int], value: float):
    """Return (batch, channels, *sizes) with `value` around it, as far as the windows reach."""
    sizes = input.shape[2:]
    full = reach(places, windows.kernel, windows.stride, windows.dilation)
    if not any(windows.padding) and all(size >= wanted for size, wanted in zip(sizes, full)):
        return input
    full = [max(before + size, wanted) for before, size, wanted in zip(windows.padding, sizes, full)]
    out = np.full((*input.shape[:2], *full), value, input.dtype)
    out[unpadded(windows.padding, sizes)] = input
    return out


@native
def largest_in_windows(input: np.ndarray, windows, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest element in each window, where in its plane it lies, and where in the whole input.

    It is the first among equals; the last NaN is larger than all.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *places), three times
    """
    lowest = {"f": -np.inf, "b": False}.get(input.dtype.kind)
    lowest = np.iinfo(input.dtype).min if lowest is None else lowest
    padded = _padded(input, windows, places, lowest)
    values, which = _largest(padded, windows, places, False)
    if values.dtype.kind == "f" and np.isnan(values).any():
        values, which = _largest(padded, windows, places, True)
    indices = _positions(which, windows, places, input.shape[2:])
    return values, indices, flat_places(indices, len(places), prod(input.shape[2:]))


def _largest(padded: np.ndarray, windows, places: Sequence[int], with_nan: bool):
    """Return the largest elements and the number, in the kernel, of each."""
    values, which = None, None
    for number, (_, met) in enumerate(offsets(windows.kernel, windows.stride, windows.dilation, places)):
        piece = padded[(slice(None), slice(None), *met)]
        if values is None:
            values = np.array(piece, order="C")
            kind = np.uint8 if prod(windows.kernel) < 256 else np.int64
            which = np.broadcast_to(_first_inside(windows, places).astype(kind), piece.shape).copy()
            continue
        piece = np.ascontiguousarray(piece)
        better = (piece > values) | (piece != piece) if with_nan else piece > values
        # numbers grow, so the larger one is the later: cheaper than a copy under a mask
        np.maximum(which, better.view(np.uint8) * kind(number), out=which)
        if with_nan:
            np.copyto(values, piece, where=better)
        else:
            np.maximum(values, piece, out=values)
    return values, which


def _first_inside(windows, places: Sequence[int]) -> np.ndarray:
    """Return, for each place, the number of the kernel's first element that meets no padding."""
    total, dims = 0, len(places)
    for dim, count in enumerate(places):
        before = np.maximum(windows.padding[dim] - np.arange(count) * windows.stride[dim], 0)
        first = -(-before // windows.dilation[dim])
        total = total * windows.kernel[dim] + first.reshape((-1,) + (1,) * (dims - dim - 1))
    return total


def _positions(which: np.ndarray, windows, places: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return where in its plane the numbered element of each window lies, counted row by row."""
    dims = len(places)
    start = step = 0
    for dim in range(dims):
        inner = prod(sizes[dim + 1 :])
        starts = np.arange(places[dim]) * windows.stride[dim] - windows.padding[dim]
        steps = np.arange(windows.kernel[dim]) * windows.dilation[dim]
        shape = (-1,) + (1,) * (dims - dim - 1)
        start, step = start + (starts * inner).reshape(shape), step + (steps * inner).reshape(shape)
    found = np.take(step.reshape(-1), which)
    found += start
    return found


def flat_places(indices: np.ndarray, dims: int, plane: int) -> np.ndarray:
    """Return positions in planes as positions in the whole array."""
    lead = indices.shape[: indices.ndim - dims]
    return indices + (np.arange(prod(lead)) * plane).reshape((*lead, *(1,) * dims))


@native
def added_at(values: np.ndarray, places: np.ndarray, shape: tuple) -> np.ndarray:
    """Return zeros with values added at flat places."""
    out = np.zeros(shape, values.dtype)
    np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))
    return out


@native
def means_in_windows(
    input: np.ndarray, windows, places: Sequence[int], with_padding: bool, divisor: int | None
) -> np.ndarray:
    """Return the mean of each window, or its sum by a divisor; integers rounded towards zero.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *places)
    """
    padded, out = _padded(input, windows, places, 0), None
    for _, met in offsets(windows.kernel, windows.stride, windows.dilation, places):
        piece = padded[(slice(None), slice(None), *met)]
        out = np.array(piece, order="C") if out is None else np.add(out, piece, out)
    divisor = _divisor(windows, input.shape[2:], places, with_padding, divisor, input.dtype)
    return out / divisor if out.dtype.kind == "f" else _towards_zero(out, divisor)


def _divisor(
    windows, sizes: Sequence[int], places: Sequence[int], with_padding: bool, override: int | None, kind: np.dtype
):
    """Return what each window's sum is divided by: a number if it is the same for all."""
    if override is not None:
        return kind.type(override)
    found = counts(windows, sizes, places, with_padding)
    first = found.reshape(-1)[0] if found.size else 1
    return kind.type(first) if (found == first).all() else found.astype(kind)


def _towards_zero(dividend: np.ndarray, divisor: np.ndarray):
    """Return the quotients of integers, rounded towards zero."""
    quotient = dividend // divisor
    return quotient + ((quotient < 0) & (quotient * divisor != dividend))


@native
def shared_in_windows(
    grad: np.ndarray, windows, sizes: Sequence[int], with_padding: bool, divisor: int | None
) -> np.ndarray:
    """Return zeros with each value, divided, added to all elements of its window: the transpose of `means_in_windows`.

    Shapes: (batch, channels, *places) -> (batch, channels, *sizes)
    """
    places = grad.shape[2:]
    grad = grad / _divisor(windows, sizes, places, with_padding, divisor, grad.dtype)
    wanted = reach(places, windows.kernel, windows.stride, windows.dilation)
    full = [max(before + size, last) for before, size, last in zip(windows.padding, sizes, wanted)]
    out = np.zeros((*grad.shape[:2], *full), grad.dtype)
    for _, met in offsets(windows.kernel, windows.stride, windows.dilation, places):
        out[(slice(None), slice(None), *met)] += grad
    return out[unpadded(windows.padding, sizes)]


def counts(windows, sizes: Sequence[int], places: Sequence[int], with_padding: bool) -> np.ndarray:
    """Return how many elements each window has, in the padding too or in the input only; never beyond the padding."""
    total = np.ones((), np.int64)
    for n, k, s, p, size in zip(places, windows.kernel, windows.stride, windows.padding, sizes):
        starts = np.arange(n) * s - p
        ends = np.minimum(starts + k, size + p)
        found = ends - starts if with_padding else np.minimum(ends, size) - np.maximum(starts, 0)
        total = total[..., None] * found
    return total


def bins(size: int, count: int) -> list[tuple[int, int]]:
    """Return where each of `count` adaptive windows over `size` elements starts and ends."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def mean_matrix(size: int, count: int, kind: np.dtype) -> np.ndarray:
    """Return the matrix (count, size) that takes the mean over each adaptive window."""
    matrix = np.zeros((count, size), kind)
    for row, (start, end) in enumerate(bins(size, count)):
        matrix[row, start:end] = 1 / (end - start)
    return matrix


@native
def means_in_bins(input: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Return the mean of each adaptive window.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *places)
    """
    return _along_dims(input, [mean_matrix(*pair, input.dtype) for pair in zip(input.shape[2:], places)])


@native
def shared_in_bins(grad: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return zeros with each value, divided, added to all elements of its adaptive window.

    Shapes: (batch, channels, *places) -> (batch, channels, *sizes)
    """
    return _along_dims(grad, [mean_matrix(*pair, grad.dtype).T for pair in zip(sizes, grad.shape[2:])])


def _along_dims(input: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Return (batch, channels, *sizes) with each of the last dims multiplied by a matrix (new size, size)."""
    for dim, matrix in enumerate(matrices, 2):
        input = applied(input, dim, matrix)
    return np.ascontiguousarray(input)


@native
def largest_in_bins(input: np.ndarray, counts_of: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest element in each adaptive window, where in its plane it lies, and where in the whole input.

    It is the first among equals; the last NaN is larger than all.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *counts), three times
    """
    sizes = input.shape[2:]
    where = np.arange(prod(sizes)).reshape(sizes)
    values = np.empty((*input.shape[:2], *counts_of), input.dtype)
    indices = np.empty(values.shape, np.int64)
    limits = [bins(size, count) for size, count in zip(sizes, counts_of)]
    for cell in np.ndindex(*counts_of):
        box = tuple(slice(*limits[dim][at]) for dim, at in enumerate(cell))
        rows = input[(slice(None), slice(None), *box)].reshape((*input.shape[:2], where[box].size))
        best = np.argmax(rows, -1)
        wrong = np.isnan(rows)
        if wrong.any():
            best = np.where(wrong.any(-1), rows.shape[-1] - 1 - np.argmax(wrong[..., ::-1], -1), best)
        at = (slice(None), slice(None), *cell)
        values[at] = np.take_along_axis(rows, best[..., None], -1)[..., 0]
        indices[at] = where[box].reshape(-1)[best]
    return values, indices, flat_places(indices, len(sizes), where.size)
