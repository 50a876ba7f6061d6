"""Python numbers as operands: the dtype that they promote to, and numbers in the dtype of an array."""

import numpy as np

from backlight.dtypes import from_numpy_dtype
from backlight.errors import UnsupportedError
from backlight.ops.elementwise.copying import cast
from backlight.ops.type_promotion import category, check_scalar, common_dtype, is_float, promote_types

ndarray = np.ndarray


def promoted_with(input, *numbers):
    """Return a tensor in the dtype that it is promoted to by Python numbers (None promotes to nothing)."""
    data = input._data
    if data.dtype.kind == "f":
        return input
    return cast(input, common_dtype([data], [number for number in numbers if number is not None]))


def like(array, number):
    """Return a number in the dtype of an array: as a 0-d array for an array, else as a NumPy scalar.

    Integers too large for the dtype wrap round, as in PyTorch.
    """
    if number.__class__ is int and not -(2**63) <= number < 2**63:
        check_scalar(number)
        number = float(number) if is_float(array.dtype) else number
    try:
        return np.array(number, array.dtype) if array.__class__ is ndarray else array.dtype.type(number)
    except OverflowError:
        return np.array(number).astype(array.dtype)


def no_kernel(kernel: str, kind, remedy: str) -> UnsupportedError:
    """Return PyTorch's error where a kernel does not take a dtype, a NumPy one."""
    return UnsupportedError(f"\"{kernel}\" not implemented for '{from_numpy_dtype(kind).old_name}'; {remedy}")


def no_integers(kernel: str):
    """Return a value for an op's `refuse`: PyTorch's error for integers and bools, in the name of its kernel."""

    def refuse(*kinds) -> UnsupportedError | None:
        kind = _common(kinds)
        if category(kind) == 2:
            return None
        return no_kernel(kernel, kind, "convert the input with .float()")

    return refuse


def no_floats(kernel: str):
    """Return a value for an op's `refuse`: PyTorch's error for floats, in the name of its kernel."""

    def refuse(*kinds) -> str | None:
        kind = _common(kinds)
        if category(kind) < 2:
            return None
        return no_kernel(kernel, kind, "compare, or convert with .long()")

    return refuse


def only_integers(kernel: str):
    """Return a value for an op's `refuse`: PyTorch's error for floats and bools, in the name of its kernel."""

    def refuse(*kinds) -> UnsupportedError | None:
        kind = _common(kinds)
        return None if category(kind) == 1 else no_kernel(kernel, kind, "convert it with .long()")

    return refuse


def no_bools(kernel: str):
    """Return a value for an op's `refuse`: PyTorch's error for bools, in the name of its kernel."""

    def refuse(*kinds) -> UnsupportedError | None:
        kind = _common(kinds)
        return no_kernel(kernel, kind, "convert it with .long()") if kind.kind == "b" else None

    return refuse


def floats_of_four_bytes(kernel: str):
    """Return a value for an op's `refuse`: PyTorch's error for float16 and bfloat16, in the name of its kernel."""

    def refuse(*kinds) -> UnsupportedError | None:
        kind = _common(kinds)
        halves = category(kind) == 2 and kind.itemsize == 2
        return no_kernel(kernel, kind, "convert it with .float()") if halves else None

    return refuse


def require_floats(kernel: str, *tensors, halves: bool = True) -> None:
    """Raise PyTorch's error, in the name of its kernel, unless tensors hold floats; `halves`: also those of 2 bytes."""
    for tensor in tensors:
        kind = getattr(tensor, "_data", tensor).dtype
        if category(kind) < 2 or (kind.itemsize == 2 and not halves):
            raise no_kernel(kernel, kind, "convert it with .float()")


def require_no_bools(kernel: str, tensor) -> None:
    """Raise PyTorch's error, in the name of its kernel, for a tensor of bools."""
    kind = getattr(tensor, "_data", tensor).dtype
    if kind.kind == "b":
        raise no_kernel(kernel, kind, "convert it with .long()")


def _common(kinds):
    found = kinds[0]
    for kind in kinds[1:]:
        found = promote_types(found, kind)
    return found
