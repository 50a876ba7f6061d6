"""Classes and functions that a program allows files to name: `load` builds them without `weights_only=False`."""

from collections.abc import Callable, Iterable, Mapping

from backlight.errors import ArgumentError
from backlight.kernels.state_blocks import Block

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

Allowed = Callable | tuple[Callable, str]


class Allowances:
    """What is allowed, in the order in which it was."""

    def __init__(self):
        self.listed: tuple[Allowed, ...] = ()

    def by_path(self) -> Mapping[str, Callable]:
        """Return what is allowed by "module.name", as a pickle names it."""
        return dict(map(_with_path, self.listed))


ALLOWED = Allowances()


def add_safe_globals(safe_globals: Iterable[Allowed]) -> None:
    """Allow files to name classes and functions: `load` then calls them with what the file says.

    Args:
        safe_globals: classes and functions; with their full name, as a tuple, if a file names them differently.

    Raises:
        TypeError: one of them is neither.
    """
    added = tuple(safe_globals)
    for each in added:
        _with_path(each)
    ALLOWED.listed += tuple(each for each in added if each not in ALLOWED.listed)


def get_safe_globals() -> list[Allowed]:
    """Return what `add_safe_globals` allowed."""
    return list(ALLOWED.listed)


def clear_safe_globals() -> None:
    """Allow nothing but tensors and plain values again."""
    ALLOWED.listed = ()


class safe_globals(Block):  # noqa: N801 - PyTorch's name
    """Allow files to name classes and functions, inside a `with` block.

    >>> import backlight as torch
    >>> with torch.serialization.safe_globals([complex]):
    ...     torch.serialization.get_safe_globals()
    [<class 'complex'>]
    """

    __slots__ = ("added",)

    def __init__(self, safe_globals: Iterable[Allowed]):
        self.added = list(safe_globals)

    def _block_state(self):
        return ALLOWED.listed

    def _block_change(self, state: tuple[Allowed, ...]):
        add_safe_globals(self.added)
        return self

    def _block_restore(self, state: tuple[Allowed, ...]) -> None:
        ALLOWED.listed = state


def _with_path(allowed: Allowed) -> tuple[str, Callable]:
    """Return the full name of what is allowed, and itself."""
    if isinstance(allowed, tuple):
        if len(allowed) != 2 or not callable(allowed[0]) or not isinstance(allowed[1], str):
            raise ArgumentError(f"Expected a tuple of (callable, its full path), got {allowed!r}")
        return allowed[1], allowed[0]
    if not hasattr(allowed, "__module__") or not hasattr(allowed, "__qualname__"):
        raise ArgumentError(f"safe globals must be classes or functions, got {type(allowed).__name__}: {allowed!r:.60}")
    return f"{allowed.__module__}.{allowed.__qualname__}", allowed
