"""Warnings that are given once a process, as PyTorch's TORCH_WARN_ONCE gives them."""

import warnings

_given: set[str] = set()
_always = False


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warn of something the first time that it happens, or every time after `set_warn_always(True)`."""
    if _always or message not in _given:
        _given.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


def set_warn_always(b: bool) -> None:
    """Give warnings that are normally given once each time that they apply; meant for tests."""
    global _always
    _always = bool(b)


def is_warn_always_enabled() -> bool:
    """Return whether `set_warn_always(True)` is in force."""
    return _always
