"""Tensors of a given shape, filled with one number or uninitialised.

`size` may be several ints or one tuple of them: `zeros(2, 3)` is `zeros((2, 3))`. The forms that end in `_like` take
shape, dtype and memory layout from a tensor.
"""

import numpy as np

from backlight.codegen.runtime_support import is_number
from backlight.devices import require_cpu
from backlight.dispatch.dispatcher import composite_function
from backlight.dtypes import dtype, get_default_dtype, to_numpy_dtype
from backlight.engine.tensor_state import LEAF, TensorState, wrap
from backlight.errors import ArgumentError, GraphError, ShapeError
from backlight.kernels.memory_order import empty_in, empty_like_in
from backlight.kernels.sparse_array import SparseArray
from backlight.layouts import layout, memory_format, sparse_coo
from backlight.ops.scalars import element
from backlight.ops.type_promotion import check_scalar, scalar_dtype
from backlight.sizes import allocated, size_from, unwritten
from backlight.tensor.creation import made
from backlight.types import Device

__all__ = [
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]


def float_dtype(dtype: dtype | None) -> np.dtype:
    """Return NumPy's object for a dtype, or for the default dtype if there is None."""
    return to_numpy_dtype(dtype) or get_default_dtype().numpy


def zeros(*sizes, size=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a tensor filled with 0."""
    shape = size_from("zeros", sizes if size is None else (size,))
    if layout is sparse_coo:
        require_cpu(device)
        data = SparseArray(np.zeros((len(shape), 0), np.int64), np.zeros(0, float_dtype(dtype)), shape)
        return wrap(data, LEAF if requires_grad else None)
    return made(allocated(np.zeros, shape, float_dtype(dtype)), requires_grad, device, layout, pin_memory)


def ones(*sizes, size=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a tensor filled with 1."""
    shape = size_from("ones", sizes if size is None else (size,))
    if layout is sparse_coo:
        raise GraphError("full(...) is not implemented for sparse layout")
    return made(allocated(np.ones, shape, float_dtype(dtype)), requires_grad, device, layout, pin_memory)


def empty(
    *sizes, size=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None
):
    """Make an uninitialised tensor, to be written to before it is read."""
    shape = size_from("empty", sizes if size is None else (size,))
    if layout is sparse_coo:
        return zeros(shape, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return made(
        empty_in(shape, float_dtype(dtype), memory_format, unwritten), requires_grad, device, layout, pin_memory
    )


def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Make an uninitialised tensor whose dims lie in memory in the order of `physical_layout`, the outermost first."""
    shape, order = size_from("empty_permuted", (size,)), tuple(physical_layout)
    dims = len(shape)
    if dims != len(order):
        raise ShapeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {dims} is not equal to len(physical_layout) = {len(order)}"
        )
    for place, dim in enumerate(order):
        if not 0 <= dim < dims:
            raise ShapeError(
                f"Dimension out of range (expected to be between 0 and {dims - 1}, but got {dim} at index {place}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
        if dim in order[:place]:
            raise ShapeError("Duplicate dim not allowed")
    array = unwritten(tuple(shape[dim] for dim in order), float_dtype(dtype))
    return made(array.transpose(np.argsort(order).astype(int)), requires_grad, device, layout, pin_memory)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make an uninitialised tensor whose element (i, j, …) is at i · stride[0] + j · stride[1] + … in its memory."""
    shape, steps = size_from("empty_strided", (size,)), size_from("empty_strided", (stride,))
    if len(shape) != len(steps):
        raise ShapeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})")
    kind = float_dtype(dtype)
    reach = 0 if 0 in shape else 1 + sum((length - 1) * step for length, step in zip(shape, steps))
    array = np.ndarray(shape, kind, unwritten((reach,), kind), strides=[step * kind.itemsize for step in steps])
    return made(array, requires_grad, device, layout, pin_memory)


def full(size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a tensor filled with `fill_value`; an int, a float or a bool gives a tensor of that kind."""
    if layout is sparse_coo:
        raise GraphError("full(...) is not implemented for sparse layout")
    value = _filling("full", fill_value, to_numpy_dtype(dtype))
    array = allocated(np.empty, size_from("full", (size,)), value.dtype)
    array[...] = value
    return made(array, requires_grad, device, layout, pin_memory)


def _filling(function: str, value, kind: np.dtype | None, checks_halves: bool = True) -> np.ndarray:
    """Return the fill value as a 0-d array."""
    if not is_number(value) and not (isinstance(value, TensorState) and value._data.ndim == 0):
        raise ArgumentError(
            f"{function}(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}"
        )
    if isinstance(value, TensorState):
        kind, value = kind or value._data.dtype, value.item()
    else:
        check_scalar(value)
        kind = kind or scalar_dtype(value.item() if isinstance(value, np.generic) else value)
    return np.asarray(element(value, kind, checks_halves=checks_halves))


def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Make a tensor of 0 dims that holds the number `s`, by default in the default dtype."""
    return made(
        _filling("scalar_tensor", s, float_dtype(dtype), checks_halves=False), requires_grad, device, layout, pin_memory
    )


@composite_function
def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """Make a tensor filled with 0, shaped as `input`."""
    if layout is sparse_coo and input._data.__class__ is not SparseArray:
        return zeros(input.shape, dtype=dtype or input.dtype, layout=layout, device=device, requires_grad=requires_grad)
    array = empty_like_in(input._data, memory_format, to_numpy_dtype(dtype), np.zeros)
    return made(array, requires_grad, device, layout, pin_memory)


@composite_function
def ones_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """Make a tensor filled with 1, shaped as `input`."""
    array = empty_like_in(input._data, memory_format, to_numpy_dtype(dtype), np.ones)
    return made(array, requires_grad, device, layout, pin_memory)


@composite_function
def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """Make an uninitialised tensor, shaped as `input`."""
    array = empty_like_in(input._data, memory_format, to_numpy_dtype(dtype), unwritten)
    return made(array, requires_grad, device, layout, pin_memory)


@composite_function
def full_like(
    input: TensorState,
    fill_value: float | TensorState,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: memory_format | None = None,
    pin_memory: bool = False,
):
    """Make a tensor filled with `fill_value`, shaped as `input` and of its dtype."""
    value = _filling("full_like", fill_value, to_numpy_dtype(dtype) or input._data.dtype)
    array = empty_like_in(input._data, memory_format, value.dtype)
    array[...] = value
    return made(array, requires_grad, device, layout, pin_memory)
