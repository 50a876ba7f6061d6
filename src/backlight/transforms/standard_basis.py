"""The identity matrix over all elements of several tensors: one direction for each row or column of a Jacobian."""

from collections.abc import Sequence

import numpy as np

from backlight.engine.tensor_state import TensorState, wrap


def unit_rows(tensors: Sequence[TensorState], start: int = 0, stop: int | None = None) -> list:
    """Return rows of the identity matrix over all elements of the tensors, each split into the tensors' shapes."""
    made, offset = [], 0
    stop = sum(one._data.size for one in tensors) if stop is None else stop
    for one in tensors:
        unit = np.eye(stop - start, one._data.size, start - offset, one._data.dtype)
        made.append(wrap(unit.reshape((stop - start, *one._data.shape))))
        offset += one._data.size
    return made
