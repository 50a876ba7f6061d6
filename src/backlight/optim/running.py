"""What the adaptive optimizers share: step counts, running averages, and the check of their rates."""

import numpy as np

from backlight.dtypes import get_default_dtype
from backlight.errors import ValueProblem
from backlight.graph.state import wrap, writable
from backlight.tensor.tensor import Tensor

__all__ = ["check_betas", "count_step", "scalar", "to_average", "to_average_of_squares", "zeros_like"]


def scalar(value: float) -> Tensor:
    """Return a number of an optimizer's state: a 0-d tensor, float32 unless the default dtype is float64."""
    kind = np.float64 if get_default_dtype().numpy == np.float64 else np.float32
    return wrap(kind(value))


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros of a parameter's shape and dtype."""
    return wrap(np.zeros_like(writable(param)))


def count_step(state: dict) -> float:
    """Count one step in a parameter's state, and return how many there are now."""
    step = state["step"]
    step._data = step._data + step._data.dtype.type(1)
    return float(step._data)


def to_average(average: np.ndarray, value, share: float) -> None:
    """Move a running average towards a value, in place: average ← average + share · (value − average)."""
    average += share * (value - average)


def to_average_of_squares(average: np.ndarray, value, kept: float) -> None:
    """Take a square into a running average, in place: average ← kept · average + (1 − kept) · value²."""
    average *= kept
    average += (1 - kept) * value * value


def check_betas(betas) -> None:
    """Raise unless both rates of a running average can be used.

    Raises:
        ValueError: one is not in [0, 1).
    """
    for place, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueProblem(f"Invalid beta parameter at index {place}: {beta}; it must be in [0, 1)")
