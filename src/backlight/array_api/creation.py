"""The standard's creation functions, its functions of dtypes, and its inspection functions."""

import numpy as np

from backlight import dtypes
from backlight.devices import CPU, require_cpu
from backlight.dtypes import dtype, finfo, iinfo
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ValueProblem
from backlight.ops.elementwise.copying import to
from backlight.ops.shape.joining import meshgrid as grid
from backlight.ops.shape.triangular import tril as lower
from backlight.ops.shape.triangular import triu as upper
from backlight.tensor import factories, ranges
from backlight.tensor.dtype_queries import promote_types
from backlight.tensor.dtype_queries import result_type as type_of_two
from backlight.tensor.interop.dlpack import asarray as shared
from backlight.tensor.interop.dlpack import from_dlpack
from backlight.types import Device

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace"]
__all__ += ["meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]
__all__ += ["__array_api_version__", "__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype"]
__all__ += ["result_type"]


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


# --- dtypes and inspection --------------------------------------------------------------------------------------------

__array_api_version__ = "2024.12"

KINDS = {
    "bool": (dtypes.bool,),
    "signed integer": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "unsigned integer": (dtypes.uint8,),
    "real floating": (dtypes.float32, dtypes.float64),
    "complex floating": (),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"]


class Information:
    """The result of `__array_namespace_info__()`."""

    def capabilities(self) -> dict:
        """Return which optional features of the standard are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Return the default device."""
        return CPU

    def devices(self) -> list:
        """Return all devices."""
        return [CPU]

    def default_dtypes(self, *, device: Device = None) -> dict:
        """Return the default dtypes."""
        require_cpu(device)
        numbers = {"real floating": dtypes.get_default_dtype(), "complex floating": None}
        return {**numbers, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Device = None, kind: str | tuple | None = None) -> dict:
        """Return the dtypes of a kind (of all kinds by default) by their names in the standard."""
        require_cpu(device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        return {found.name: found for each in kinds for found in _of_kind(each)}


def _of_kind(kind: str) -> tuple:
    if kind not in KINDS:
        raise ValueProblem(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind]


def __array_namespace_info__() -> Information:  # noqa: N807 - the standard's name
    """Return the inspection object."""
    return Information()


def isdtype(dtype, kind: str | tuple) -> bool:
    """Tell whether a dtype is of a kind: a dtype, a name such as "integral", or a tuple of such."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return dtype == kind
    halves = (dtypes.float16, dtypes.bfloat16) if kind in ("real floating", "numeric") else ()
    return dtype in _of_kind(kind) + halves


def astype(x: TensorState, dtype, /, *, copy: bool = True, device: Device = None):
    """Return the elements in another dtype; a copy even for the same dtype, unless `copy` is False."""
    require_cpu(device)
    return to(x, dtype, copy=copy)


def can_cast(from_, to, /) -> bool:
    """Tell whether a dtype, or a tensor's, can be promoted to another."""
    source = from_.dtype if isinstance(from_, TensorState) else from_
    return promote_types(source, to) == to


def result_type(*arrays_and_dtypes):
    """Return the result dtype of an op with these operands: tensors, dtypes and Python numbers.

    Raises:
        TypeError: there is neither a tensor nor a dtype.
    """
    kinds = [x.dtype if isinstance(x, TensorState) else x for x in arrays_and_dtypes]
    found = None
    for kind in kinds:
        if isinstance(kind, dtypes.dtype):
            found = kind if found is None else promote_types(found, kind)
    if found is None:
        raise ArgumentError("result_type must be given a tensor or a dtype at least, got numbers only")
    for number in kinds:
        if isinstance(number, (bool, int, float)):
            found = type_of_two(wrap(np.empty(1, found.numpy)), number)
    return found
