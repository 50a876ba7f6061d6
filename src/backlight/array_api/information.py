"""The standard's inspection functions, and its functions of dtypes."""

import numpy as np

from backlight import dtypes
from backlight.devices import CPU, require_cpu
from backlight.dtypes import finfo, iinfo
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ArgumentError, ValueProblem
from backlight.ops.elementwise.copying import to
from backlight.tensor.dtype_queries import promote_types
from backlight.tensor.dtype_queries import result_type as type_of_two
from backlight.types import Device

__all__ = ["__array_api_version__", "__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype"]
__all__ += ["result_type"]

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
