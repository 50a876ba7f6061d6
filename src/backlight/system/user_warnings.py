"""Warnings as PyTorch gives them: at the line of the program, not of backlight; and some once a process."""

import os
import sys
import warnings

from backlight.errors import GraphError

_OWN = os.path.dirname(os.path.dirname(__file__))

_given: set[str] = set()
_always = False


def warn_outside(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line on the stack that is not backlight's own, however deep the caller is."""
    frame, level = sys._getframe(1), 2
    # code is backlight's: in its folder, or generated
    while frame is not None and frame.f_code.co_filename.startswith((_OWN, "<backlight")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warn of something the first time that it happens, or every time after `set_warn_always(True)`."""
    if _always or message not in _given:
        _given.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


def set_warn_always(b: bool) -> None:
    """Give warnings that are normally given once each time that they apply; meant for tests."""
    if not isinstance(b, bool):
        raise GraphError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    global _always
    _always = b


def is_warn_always_enabled() -> bool:
    """Return whether `set_warn_always(True)` is in force."""
    return _always
