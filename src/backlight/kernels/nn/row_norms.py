"""Rows brought to mean 0 and variance 1 (layer norm) or to mean square 1 (RMS norm), and the gradients.

Only the mean and 1 / √(variance + eps) of each row are kept for backward: two numbers a row, and the normal rows are
made again from the input where they are needed, which costs less than to write and read them.
"""

import numpy as np

from backlight.kernels.native import native
from backlight.kernels.nn.softmax import blocks, dots, sums


@native
def normalised(
    x: np.ndarray, size: int, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, centred: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Bring each row of `size` numbers to mean 0, if `centred`, and to mean square 1, then scale and shift each column.

    The mean square is taken of the centred numbers, so that no digits cancel. Large inputs go block by block, since
    what is read from the cache is four times faster.

    Shapes: x (…) of n · size numbers, weight and bias (size,) or None -> as x, (n, 1), (n, 1)

    Returns:
        The result, the means (None unless centred), and 1 / √(mean square + eps): new arrays.
    """
    shape, count = x.shape, x.dtype.type(size)
    x = x.reshape((x.size // (size or 1), size))
    out, inverse = np.empty(x.shape, x.dtype), np.empty((len(x), 1), x.dtype)
    mean = np.empty((len(x), 1), x.dtype) if centred else None
    for part in blocks(*x.shape):
        block, spread = out[part], inverse[part]
        if centred:
            np.divide(sums(x[part]), count, out=mean[part])
            np.subtract(x[part], mean[part], out=block)
        else:
            block[...] = x[part]
        np.divide(dots(block, block), count, out=spread)
        spread += x.dtype.type(eps)
        np.reciprocal(np.sqrt(spread, out=spread), out=spread)
        block *= spread
        if weight is not None:
            block *= weight
        if bias is not None:
            block += bias
    return out.reshape(shape), mean, inverse


@native
def normalised_gradients(
    grad: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray | None,
    inverse: np.ndarray,
    weight: np.ndarray | None,
    needs: tuple[bool, bool, bool],
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Return the derivatives of `normalised` for x, weight and bias, those that `needs` tells.

    Without `mean` the rows were not centred. There are as many as `inverse` has numbers.

    With n the normal rows and g = grad · weight: inverse · (g − mean(g) − n · mean(g · n)); Σ grad · n; Σ grad
    """
    shape, rows = x.shape, len(inverse)
    size = x.size // (rows or 1)
    grad, x, count = grad.reshape((rows, size)), x.reshape((rows, size)), grad.dtype.type(size)
    found = np.empty(grad.shape, grad.dtype) if needs[0] else None
    scales = np.zeros(size, grad.dtype) if needs[1] else None
    shifts = np.zeros(size, grad.dtype) if needs[2] else None
    for part in blocks(*grad.shape):
        normal = (x[part] if mean is None else x[part] - mean[part]) * inverse[part]
        if needs[1]:
            scales += (grad[part] * normal).sum(0)
        if needs[2]:
            shifts += grad[part].sum(0)
        if not needs[0]:
            continue
        block, weighted = found[part], grad[part] if weight is None else grad[part] * weight
        np.multiply(normal, dots(weighted, normal) / -count, out=block)
        block += weighted
        if mean is not None:
            block -= sums(weighted) / count
        block *= inverse[part]
    return None if found is None else found.reshape(shape), scales, shifts
