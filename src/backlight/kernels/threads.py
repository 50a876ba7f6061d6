"""How many threads the kernels use: one setting, which reaches NumPy's OpenBLAS too."""

from backlight.errors import ShapeError
from backlight.kernels import blas
from backlight.kernels.native import compiled, default_threads

__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]

_counts = {"kernels": default_threads(), "interop": default_threads()}


def set_num_threads(count: int) -> None:
    """Set how many threads a kernel or a product of matrices may use.

    By default it is as many as this process may run on, or what OMP_NUM_THREADS or BACKLIGHT_NUM_THREADS says. Results
    do not depend on it.

    Raises:
        RuntimeError: it is not a whole number, 1 or more.
    """
    _counts["kernels"] = _checked(count, "set_num_threads")
    if compiled is not None:
        compiled.set_threads(count)
    blas.set_threads(count)


def get_num_threads() -> int:
    """Return how many threads a kernel may use."""
    return _counts["kernels"] if compiled is None else compiled.threads()


def set_num_interop_threads(count: int) -> None:
    """Remember a number for `get_num_interop_threads`: ops run one after another here, each on all threads."""
    _counts["interop"] = _checked(count, "set_num_interop_threads")


def get_num_interop_threads() -> int:
    """Return what `set_num_interop_threads` was given."""
    return _counts["interop"]


def _checked(count: int, name: str) -> int:
    if type(count) is not int:
        raise ShapeError(f"{name} expects an int, but got {type(count).__name__}; give it a whole number, 1 or more")
    if count < 1:
        raise ShapeError(f"{name} expects a positive integer, got {count}: 1 means no other thread than the caller's")
    return count
