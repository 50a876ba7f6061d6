"""The standard's creation functions."""

from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.ops.shape.joining import meshgrid as grid
from backlight.ops.shape.triangular import tril as lower
from backlight.ops.shape.triangular import triu as upper
from backlight.tensor import factories, ranges
from backlight.tensor.interop.dlpack import asarray as shared
from backlight.tensor.interop.dlpack import from_dlpack
from backlight.types import Device

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace"]
__all__ += ["meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Return evenly spaced numbers from `start` (0 if one number is given) up to `stop`, which is left out."""
    first, end = (0, start) if stop is None else (start, stop)
    if (end - first) * step < 0:
        return ranges.arange(0, 0, dtype=dtype or ranges.arange(first, first, step).dtype, device=device)
    return ranges.arange(first, end, step, dtype=dtype, device=device)


def asarray(obj, /, *, dtype: dtype | None = None, device: Device = None, copy: bool | None = None):
    """Return numbers, nested lists, an array or a tensor as a tensor; without a copy if possible."""
    return shared(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None):
    """Return an uninitialised tensor."""
    return factories.empty(shape, dtype=dtype, device=device)


def zeros(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of zeros."""
    return factories.zeros(shape, dtype=dtype, device=device)


def ones(shape: int | tuple[int, ...], *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of ones."""
    return factories.ones(shape, dtype=dtype, device=device)


def full(shape: int | tuple[int, ...], fill_value: float, *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of one value."""
    return factories.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def empty_like(x: TensorState, /, *, dtype: dtype | None = None, device: Device = None):
    """Return an uninitialised tensor of x's shape and dtype."""
    return factories.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: TensorState, /, *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of x's shape and dtype, of zeros."""
    return factories.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: TensorState, /, *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of x's shape and dtype, of ones."""
    return factories.ones_like(x, dtype=dtype, device=device)


def full_like(x: TensorState, /, fill_value: float, *, dtype: dtype | None = None, device: Device = None):
    """Return a tensor of x's shape and dtype, of one value."""
    return factories.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Device = None):
    """Return a matrix with ones on its k-th diagonal."""
    made = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -made.shape[0] < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def linspace(start, stop, /, num: int, *, dtype=None, device=None, endpoint: bool = True):
    """Return `num` evenly spaced numbers, with or without `stop`."""
    found = ranges.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return found if endpoint else found[:num]


def meshgrid(*arrays, indexing: str = "xy"):
    """Return coordinate grids from vectors of coordinates."""
    return tuple(grid(*arrays, indexing=indexing)) if arrays else ()


def tril(x: TensorState, /, *, k: int = 0):
    """Return the lower triangle up to the k-th diagonal, and zeros."""
    return lower(x, k)


def triu(x: TensorState, /, *, k: int = 0):
    """Return the upper triangle from the k-th diagonal, and zeros."""
    return upper(x, k)
