"""The standard's elementwise functions: each is an op under the standard's name.

Binary functions take a Python number for either operand.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from backlight.codegen.runtime_support import is_number
from backlight.engine.tensor_state import TensorState, wrap
from backlight.ops.elementwise import comparisons, rounding, where_clamp
from backlight.ops.type_promotion import check_scalar, scalar_dtype
from backlight.tensor.interop.numpy_ufuncs import STANDARD

_COMPARISONS = """
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor greater greater_equal isfinite isinf isnan
less less_equal logical_and logical_not logical_or logical_xor not_equal signbit
"""
OPS: dict[str, Callable] = {
    **STANDARD,
    **{name: getattr(comparisons, name) for name in _COMPARISONS.split()},
    "bitwise_invert": comparisons.bitwise_not,
    "equal": comparisons.eq,
    "nextafter": rounding.nextafter,
    "real": rounding.conj,  # of real numbers: the number itself
    "round": rounding.round,
}
TAKES_NUMBERS = {name for name in OPS if getattr(getattr(np, name), "nin", 1) == 2} - {"pow"}  # whose op does itself
__all__ = [*OPS, "clip"]


def _with_numbers(function: Callable) -> Callable:
    """Return a binary function that takes numbers, too."""

    @wraps(function)
    def of_two(x1, x2, /):
        return function(_as_tensor(x1), _as_tensor(x2))

    return of_two


def _as_tensor(value):
    if isinstance(value, TensorState) or not is_number(value):
        return value
    check_scalar(value)
    return wrap(np.asarray(value, scalar_dtype(value)))


globals().update({name: _with_numbers(found) if name in TAKES_NUMBERS else found for name, found in OPS.items()})


def clip(x: TensorState, /, min: float | TensorState | None = None, max: float | TensorState | None = None):
    """Clamp the elements; without limits, return a copy."""
    return x.clone() if min is None and max is None else where_clamp.clamp(x, min, max)
