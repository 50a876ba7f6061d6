"""The unit matrix over all elements of several tensors: the directions that a Jacobian's rows or columns belong to."""

import numpy as np

from backlight.engine.tensor_state import wrap


def unit_rows(tensors, start: int = 0, stop: int | None = None) -> list:
    """Return rows of the unit matrix over all elements of the tensors, each cut into the tensors' shapes."""
    made, offset = [], 0
    stop = sum(one._data.size for one in tensors) if stop is None else stop
    for one in tensors:
        unit = np.eye(stop - start, one._data.size, start - offset, one._data.dtype)
        made.append(wrap(unit.reshape((stop - start, *one._data.shape))))
        offset += one._data.size
    return made
