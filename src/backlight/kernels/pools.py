"""Windows reduced to one value each, an element of the kernel at a time: every step is one pass over all places."""

from math import prod

import numpy as np

from backlight.kernels.patches import inside, offsets, reach
from backlight.kernels.resizing import applied


def _padded(input, windows, places, value):
    """Return (batch, channels, *sizes) with `value` around it, as far as the windows reach."""
    sizes = input.shape[2:]
    full = reach(places, windows.kernel, windows.stride, windows.dilation)
    if not any(windows.padding) and all(size >= wanted for size, wanted in zip(sizes, full)):
        return input
    full = [max(before + size, wanted) for before, size, wanted in zip(windows.padding, sizes, full)]
    out = np.full((*input.shape[:2], *full), value, input.dtype)
    out[inside(windows.padding, sizes)] = input
    return out


def largest(input, windows, places) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest element in each window and where in its plane it lies: the first among equals; NaN wins.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *places), twice
    """
    lowest = {"f": -np.inf, "b": False}.get(input.dtype.kind)
    lowest = np.iinfo(input.dtype).min if lowest is None else lowest
    padded = _padded(input, windows, places, lowest)
    values, which = _largest(padded, windows, places, False)
    if values.dtype.kind == "f" and np.isnan(values).any():
        values, which = _largest(padded, windows, places, True)
    return values, _positions(which, windows, places, input.shape[2:])


def _largest(padded, windows, places, with_nan: bool):
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


def _first_inside(windows, places) -> np.ndarray:
    """Return, for each place, the number of the kernel's first element that meets no padding."""
    total, dims = 0, len(places)
    for dim, count in enumerate(places):
        before = np.maximum(windows.padding[dim] - np.arange(count) * windows.stride[dim], 0)
        first = -(-before // windows.dilation[dim])
        total = total * windows.kernel[dim] + first.reshape((-1,) + (1,) * (dims - dim - 1))
    return total


def _positions(which, windows, places, sizes) -> np.ndarray:
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


def totals(input, windows, places) -> np.ndarray:
    """Return the sum of each window.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *places)
    """
    padded, out = _padded(input, windows, places, 0), None
    for _, met in offsets(windows.kernel, windows.stride, windows.dilation, places):
        piece = padded[(slice(None), slice(None), *met)]
        out = np.array(piece, order="C") if out is None else np.add(out, piece, out)
    return out


def shared(grad, windows, sizes) -> np.ndarray:
    """Return zeros with each value added to all elements of its window: the transpose of `totals`.

    Shapes: (batch, channels, *places) -> (batch, channels, *sizes)
    """
    places = grad.shape[2:]
    wanted = reach(places, windows.kernel, windows.stride, windows.dilation)
    full = [max(before + size, last) for before, size, last in zip(windows.padding, sizes, wanted)]
    out = np.zeros((*grad.shape[:2], *full), grad.dtype)
    for _, met in offsets(windows.kernel, windows.stride, windows.dilation, places):
        out[(slice(None), slice(None), *met)] += grad
    return out[inside(windows.padding, sizes)]


def counts(windows, sizes, places, with_padding: bool) -> np.ndarray:
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


def mean_matrix(size: int, count: int, kind) -> np.ndarray:
    """Return the matrix (count, size) that takes the mean over each adaptive window."""
    matrix = np.zeros((count, size), kind)
    for row, (start, end) in enumerate(bins(size, count)):
        matrix[row, start:end] = 1 / (end - start)
    return matrix


def along_dims(input, matrices) -> np.ndarray:
    """Return (batch, channels, *sizes) with each of the last dims multiplied by a matrix (new size, size)."""
    for dim, matrix in enumerate(matrices, 2):
        input = applied(input, dim, matrix)
    return np.ascontiguousarray(input)


def largest_in_bins(input, counts_of) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest element in each adaptive window and where in its plane it lies: the first among equals.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *counts), twice
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
        at = (slice(None), slice(None), *cell)
        values[at] = np.take_along_axis(rows, best[..., None], -1)[..., 0]
        indices[at] = where[box].reshape(-1)[best]
    return values, indices
