"""Python numbers as operands: the dtype that they promote to, and numbers in the dtype of an array."""

import functools
from collections.abc import Callable

import numpy as np

from backlight.codegen.missing_kernels import BAREBONES, missing_kernel
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import UnsupportedError
from backlight.ops.elementwise.copying import cast
from backlight.ops.type_promotion import category, check_scalar, common_dtype, is_float, promote_types

ndarray = np.ndarray


def promoted_with(input: TensorState, *numbers):
    """Return a tensor in the dtype that it is promoted to by Python numbers (None promotes to nothing)."""
    data = input._data
    if data.dtype.kind == "f" and complex not in map(type, numbers):
        return input
    return cast(input, common_dtype([data], [number for number in numbers if number is not None]))


def like(array: np.ndarray, number: float):
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


def no_kernel(kernel: str, kind: np.dtype, remedy: str) -> UnsupportedError:
    """Return PyTorch's error where a kernel does not take a dtype, a NumPy one."""
    return UnsupportedError(f"\"{kernel}\" not implemented for '{from_numpy_dtype(kind).old_name}'; {remedy}")


def require_kernel(kernel: str, kind: np.dtype) -> None:
    """Raise PyTorch's error, in the name of its kernel, for uint16, uint32, uint64 and complex32."""
    if kind.num in BAREBONES:
        raise missing_kernel(kernel, kind)


def _refusal(kernel: str, refused: Callable[[np.dtype], bool], remedy: str) -> Callable:
    """Return a value for an op's `dtype_error`: PyTorch's error, in the name of its kernel, for the common dtype."""

    def refuse(*kinds) -> UnsupportedError | None:
        kind = functools.reduce(promote_types, kinds)
        return no_kernel(kernel, kind, remedy) if refused(kind) else None

    return refuse


def require_real(kernel: str, values: np.ndarray | TensorState) -> None:
    """Raise PyTorch's error, in the name of its kernel, for an array or a tensor of complex numbers."""
    kind = getattr(values, "_data", values).dtype
    if kind.kind in "cW":
        raise no_kernel(kernel, kind, "pass real and imaginary parts")


def no_integers(kernel: str) -> Callable:
    """Return a value for an op's `dtype_error`, for integers and bools."""
    return _refusal(kernel, lambda kind: category(kind) < 2, "convert the input with .float()")


def no_floats(kernel: str) -> Callable:
    """Return a value for an op's `dtype_error`, for floats."""
    return _refusal(kernel, lambda kind: category(kind) == 2, "compare, or convert with .long()")


def only_integers(kernel: str) -> Callable:
    """Return a value for an op's `dtype_error`, for floats and bools."""
    return _refusal(kernel, lambda kind: category(kind) != 1, "convert it with .long()")


def no_bools(kernel: str) -> Callable:
    """Return a value for an op's `dtype_error`, for bools."""
    return _refusal(kernel, lambda kind: kind.kind == "b", "convert it with .long()")


def floats_of_four_bytes(kernel: str) -> Callable:
    """Return a value for an op's `dtype_error`, for float16 and bfloat16."""
    return _refusal(kernel, lambda kind: category(kind) == 2 and kind.itemsize == 2, "convert it with .float()")


def require_floats(kernel: str, *tensors, halves: bool = True) -> None:
    """Raise PyTorch's error, in the name of its kernel, unless tensors hold floats; `halves`: also those of 2 bytes."""
    for tensor in tensors:
        kind = getattr(tensor, "_data", tensor).dtype
        if category(kind) < 2 or (kind.itemsize == 2 and not halves):
            raise no_kernel(kernel, kind, "convert it with .float()")


def require_no_bools(kernel: str, tensor: np.ndarray) -> None:
    """Raise PyTorch's error, in the name of its kernel, for a tensor of bools."""
    kind = getattr(tensor, "_data", tensor).dtype
    if kind.kind == "b":
        raise no_kernel(kernel, kind, "convert it with .long()")
