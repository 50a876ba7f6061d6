"""Convolutions as matrix products of patches, written for the cache.

NOTE [Patches]
A patch is what the kernel sees at one place. Laid as columns, (channels · kernel, places), patches turn a convolution
into one matrix product an image, whose result lies in memory as (batch, channels, place) already. The columns of
a whole batch would not fit any cache: they are written, used and written over a few images at a time, which takes
a third off the time and nearly all of the memory.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from backlight.kernels.native import native

BUFFER = 1 << 21  # bytes of columns at a time: they should stay in the cache


def windows(
    array: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], places: Sequence[int]
) -> np.ndarray:
    """Return a view of what a kernel sees at each place.

    Shapes: (batch, channels, *sizes) -> (batch, channels, *kernel, *places)
    """
    outer, steps = array.strides[:2], array.strides[2:]
    inner = [step * by if size > 1 else 0 for step, by, size in zip(steps, dilation, kernel)]
    along = [step * by if count > 1 else 0 for step, by, count in zip(steps, stride, places)]
    return as_strided(array, (*array.shape[:2], *kernel, *places), (*outer, *inner, *along), writeable=False)


def offsets(
    kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], places: Sequence[int]
) -> Iterator[tuple[tuple, tuple]]:
    """Yield, for each element of the kernel, its index and the slices of the input that it meets."""
    for index in product(*map(range, kernel)):
        starts = [at * by for at, by in zip(index, dilation)]
        yield (index, tuple(slice(start, start + (n - 1) * by + 1, by) for start, by, n in zip(starts, stride, places)))


def unpadded(before: Sequence[int], sizes: Sequence[int]) -> tuple:
    """Return the index of what lies within padding of `before` elements."""
    return (slice(None), slice(None), *[slice(start, start + size) for start, size in zip(before, sizes)])


def reach(
    places: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return how many elements of each dim the kernel meets from the first place to the last."""
    return tuple((n - 1) * s + d * (k - 1) + 1 if n else 0 for n, k, s, d in zip(places, kernel, stride, dilation))


def column_chunks(input, kernel, stride, before, dilation, places) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield a part of the batch and its patches, in an array that the next part is written over.

    Shapes: input (batch, channels, *sizes) -> (part, channels, *kernel, *places)

    Args:
        before: the zeros before each dim; as many follow as the last place needs.
    """
    batch, channels, *sizes = input.shape
    if prod(kernel) == 1 and set(stride) == {1} and tuple(sizes) == tuple(places):
        yield slice(None), input.reshape((batch, channels, *kernel, *places))
        return
    image = channels * prod(kernel) * prod(places) * input.itemsize
    count = max(1, min(batch, BUFFER // max(image, 1)))
    columns = np.empty((count, channels, *kernel, *places), input.dtype)
    wanted = reach(places, kernel, stride, dilation)
    padded = np.zeros((count, channels, *[max(b + n, w) for b, n, w in zip(before, sizes, wanted)]), input.dtype)
    inner, seen = padded[unpadded(before, sizes)], windows(padded, kernel, stride, dilation, places)
    for start in range(0, batch, count):
        stop = min(start + count, batch)
        inner[: stop - start] = input[start:stop]
        columns[: stop - start] = seen[: stop - start]
        yield slice(start, stop), columns[: stop - start]


@native
def convolve(input, weight, bias, stride, before, dilation, groups: int, places) -> np.ndarray:
    """Return Σ over channels and kernel of weight · input at each place, plus bias.

    Shapes: input (batch, in, *sizes), weight (out, in / groups, *kernel) -> (batch, out, *places)
    """
    batch, kernel, count = input.shape[0], weight.shape[2:], prod(places)
    outs, ins = weight.shape[0] // groups, prod(weight.shape[1:])
    matrices = weight.reshape((groups, outs, ins))
    out = np.empty((batch, groups, outs, count), input.dtype)
    for part, columns in column_chunks(input, kernel, stride, before, dilation, places):
        _multiply(matrices, columns.reshape((columns.shape[0], groups, ins, count)), out[part])
        if bias is not None:
            out[part] += bias.reshape((groups, outs, 1))
    return out.reshape((batch, groups * outs, *places))


def _multiply(matrices: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    if columns.shape[1] == 1:  # without the dim of groups the product takes BLAS's direct path
        np.matmul(matrices[0], columns[:, 0], out=out[:, 0])
    else:
        np.matmul(matrices, columns, out=out)


@native
def weight_gradient(grad, input, kernel, stride, before, dilation, groups: int) -> np.ndarray:
    """Return Σ over batch and places of grad · what the kernel saw there.

    Shapes: grad (batch, out, *places), input (batch, in, *sizes) -> (out, in / groups, *kernel)
    """
    places = grad.shape[2:]
    outs, ins, count = grad.shape[1] // groups, input.shape[1] // groups * prod(kernel), prod(places)
    total = np.zeros((groups, outs, ins), grad.dtype)
    for part, columns in column_chunks(input, kernel, stride, before, dilation, places):
        found = columns.shape[0]
        rows = grad[part].reshape((found, groups, outs, count))
        total += np.add.reduce(rows @ columns.reshape((found, groups, ins, count)).mT, 0)
    return total.reshape((groups * outs, input.shape[1] // groups, *kernel))


def spread(grad, weight, stride, before, dilation, groups: int, sizes) -> np.ndarray:
    """Return grad · weight added to all that the kernel saw: the transpose of `convolve`.

    Shapes: grad (batch, out, *places), weight (out, in / groups, *kernel) -> (batch, in, *sizes)
    """
    kernel, places = weight.shape[2:], grad.shape[2:]
    around = [d * (k - 1) - b for d, k, b in zip(dilation, kernel, before)]
    if set(stride) <= {1} and min(around, default=0) >= 0 and prod(sizes) and np.isfinite(np.add.reduce(weight, None)):
        return convolve(grad, flipped(weight, groups), None, stride, around, dilation, groups, sizes)
    batch, outs, ins = grad.shape[0], weight.shape[0] // groups, prod(weight.shape[1:])
    matrices = np.ascontiguousarray(weight.reshape((groups, outs, ins)).mT)
    channels = weight.shape[1] * groups
    rows = grad.reshape((batch, groups, outs, prod(places)))
    out = np.empty((batch, channels, *sizes), grad.dtype)
    wanted = reach(places, kernel, stride, dilation)
    full = [max(b + n, w) for b, n, w in zip(before, sizes, wanted)]
    count = max(1, min(batch, BUFFER // max(channels * prod(kernel) * prod(places) * grad.itemsize, 1)))
    for start in range(0, batch, count):
        part = slice(start, min(start + count, batch))
        columns = (matrices @ rows[part]).reshape((-1, channels, *kernel, *places))
        out[part] = added(columns, stride, dilation, full)[unpadded(before, sizes)]
    return out


def flipped(weight: np.ndarray, groups: int) -> np.ndarray:
    """Return the weight of the transposed convolution: kernels turned round, inputs and outputs exchanged."""
    outs, ins, *kernel = weight.shape
    turned = weight[(slice(None), slice(None), *[slice(None, None, -1)] * len(kernel))]
    exchanged = turned.reshape((groups, outs // groups, ins, *kernel)).swapaxes(1, 2)
    return np.ascontiguousarray(exchanged.reshape((groups * ins, outs // groups, *kernel)))


def added(columns: np.ndarray, stride: Sequence[int], dilation: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return zeros with all patches added where they were seen.

    Shapes: columns (batch, channels, *kernel, *places) -> (batch, channels, *sizes)
    """
    dims = len(sizes)
    kernel, places = columns.shape[2 : 2 + dims], columns.shape[2 + dims :]
    out = np.zeros((*columns.shape[:2], *sizes), columns.dtype)
    for index, met in offsets(kernel, stride, dilation, places):
        out[(slice(None), slice(None), *met)] += columns[(slice(None), slice(None), *index)]
    return out
