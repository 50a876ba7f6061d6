"""The first of each row in order."""

import numpy as np

from backlight.kernels.native import native


@native
def top_places(rows: np.ndarray, count: int, largest: bool) -> np.ndarray:
    """Return where the `count` largest (or smallest) of each row are, in order; equals keep theirs.

    NaN counts as the greatest.

    Shapes: rows (n, size) -> (n, count)
    """
    return order_along(rows, 1, largest)[:, :count]


def order_along(values: np.ndarray, dim: int, descending: bool = False) -> np.ndarray:
    """Return the indices that sort an array along `dim`: equals keep their order, NaN counts as the greatest."""
    if not descending:
        return np.argsort(
            values.copy(), dim, kind="stable"
        )  # which moves by the values: no other thread may write to them
    turned = np.argsort(np.flip(values, dim), dim, kind="stable")
    return values.shape[dim] - 1 - np.flip(turned, dim)
