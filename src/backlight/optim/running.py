"""The state of a parameter: the number of its steps, and arrays of its shape."""

import numpy as np

from backlight.dtypes import get_default_dtype
from backlight.engine.tensor_state import wrap, writable
from backlight.tensor.tensor import Tensor

__all__ = ["count_step", "init_state", "scalar", "zeros_like"]


def scalar(value: float) -> Tensor:
    """Return a number of an optimizer's state: a 0-d tensor, float32 unless the default dtype is float64."""
    kind = np.float64 if get_default_dtype().numpy == np.float64 else np.float32
    return wrap(kind(value))


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros of a parameter's shape and dtype."""
    return wrap(np.zeros_like(writable(param)))


def init_state(state: dict, param: Tensor, *names: str, **others) -> None:
    """Initialise a parameter's state: a count of 0, zeros under names, and other entries."""
    state.update({"step": scalar(0), **{name: zeros_like(param) for name in names}, **others})


def count_step(state: dict) -> float:
    """Increment the step count of a parameter's state, and return it."""
    step = state["step"]
    step._data = step._data + step._data.dtype.type(1)
    return float(step._data)
