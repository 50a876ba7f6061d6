"""`torch._check` and its kin: conditions that a program states, and errors with its own messages."""

import warnings
from collections.abc import Callable

from backlight.engine.tensor_state import TensorState

UNNAMED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise an error of a type unless a condition holds.

    Args:
        message: returns the text, if the condition does not hold.

    Raises:
        TypeError: the condition is no bool, or `message` cannot be called.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(UNNAMED)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError unless a condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], str] | None = None) -> None:
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless a number is 0 or more, and at most `max`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use _check(i "
        ">= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: TensorState, message: Callable[[], str] | None = None
) -> None:
    """Raise an error of a type unless all elements of a tensor of bools are True."""
    if not isinstance(cond, TensorState):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond._data.dtype != bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond._data.all()), message)


def _check_tensor_all(cond: TensorState, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of bools are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: bool | TensorState, message: str) -> None:
    """Raise AssertionError, with a message, unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def _assert_async(tensor: TensorState, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"):
    """Raise RuntimeError unless a tensor of one element is not zero."""
    if not bool(tensor):
        raise RuntimeError(assert_msg)
