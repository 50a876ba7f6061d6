"""The names of errors' classes while a PyTorch program runs: those of the classes that PyTorch raises."""

from collections.abc import Iterator
from contextlib import contextmanager

from backlight.errors import BacklightError

# Classes of errors that PyTorch has as well, by our name
_OF_PYTORCH = {
    "LinAlgError": "_LinAlgError",
    "CheckpointError": "CheckpointError",
    "GradcheckError": "GradcheckError",
    "DistError": "DistError",
    "DistBackendError": "DistBackendError",
    "DistStoreError": "DistStoreError",
    "DistNetworkError": "DistNetworkError",
}


@contextmanager
def pytorch_error_names() -> Iterator[None]:
    """Let `type(error).__name__` and `repr(error)` inside the block read as in PyTorch: RuntimeError, not ShapeError.

    Classes keep their `__qualname__`: by it `pickle` finds them, and tracebacks name them.
    """
    BacklightError.__init_subclass__ = classmethod(_rename)  # some modules are imported on first use
    try:
        for kind in _subclasses(BacklightError):
            _rename(kind)
        yield
    finally:
        del BacklightError.__init_subclass__
        for kind in _subclasses(BacklightError):
            kind.__name__ = kind.__qualname__.rpartition(".")[2]


def _subclasses(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _rename(kind: type) -> None:
    if kind.__module__.partition(".")[0] == "backlight":  # a program may derive from ours
        other = next(one.__name__ for one in kind.__mro__ if one.__module__.partition(".")[0] != "backlight")
        kind.__name__ = _OF_PYTORCH.get(kind.__qualname__, other)
