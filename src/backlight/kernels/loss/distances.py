"""Distances between all pairs of points, and their gradients: Euclidean (p = 2), or sums of absolute differences (1).

Differences are taken before they are squared, so that points far from the origin lose no digits.
"""

import numpy as np

from backlight.kernels.native import native


@native
def distances(x1: np.ndarray, turned: np.ndarray, p: float) -> np.ndarray:
    """Return the distance of each point of x1 from each of the others, which are given with dims as rows.

    Shapes: x1 (batch, n, dims), turned (batch, dims, m) -> (batch, n, m)
    """
    change = x1[:, :, None, :] - turned.swapaxes(1, 2)[:, None, :, :]
    return np.sqrt((change * change).sum(3)) if p == 2 else np.abs(change).sum(3)


@native
def distance_gradients(
    grad: np.ndarray, x1: np.ndarray, x2: np.ndarray, out: np.ndarray, p: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients for both kinds of points; a distance of 0 gives none.

    Shapes: x1 (batch, n, dims), x2 (batch, m, dims), grad and out (batch, n, m) -> those of x1 and x2
    """
    change = x1[:, :, None, :] - x2[:, None, :, :]
    if p == 1:
        gradients = np.sign(change) * grad[..., None]
    else:
        gradients = change * np.divide(grad, out, out=np.zeros_like(out), where=out != 0)[..., None]
    return gradients.sum(2), -gradients.sum(1)
