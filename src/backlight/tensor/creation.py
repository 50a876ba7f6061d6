"""Tensors from data: Python's numbers and lists, NumPy's arrays, other tensors."""

import warnings

import numpy as np

from backlight.devices import require_cpu
from backlight.dtypes import from_numpy_dtype, to_numpy_dtype
from backlight.errors import GraphError
from backlight.graph.modes import modes
from backlight.graph.state import LEAF, TensorState, wrap
from backlight.graph.storage import InferenceStorage
from backlight.ops.promotion import is_float
from backlight.tensor.nested import array_from

__all__ = ["from_numpy", "tensor"]

COPY_CONSTRUCT = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def leaf(data, requires_grad: bool = False):
    """Return a tensor over an array, not copied (one of 0 dims becomes a NumPy scalar: NOTE [0-d data]).

    Raises:
        RuntimeError: gradients are asked for on a dtype that has none.
    """
    if requires_grad and not is_float(data.dtype):
        raise GraphError(
            "Only Tensors of floating point and complex dtype can require gradients; this one is "
            f"{from_numpy_dtype(data.dtype)}: give floats, or dtype=torch.float32"
        )
    storage = InferenceStorage() if modes.inference else None
    return wrap(data if data.ndim else data[()], LEAF if requires_grad else None, storage)


def refuse_pinning(pin_memory: bool) -> None:
    """Say that memory cannot be pinned where there is no accelerator to copy it to.

    Raises:
        RuntimeError: `pin_memory` is true.
    """
    if pin_memory:
        raise GraphError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system. Leave pin_memory out"
        )


def tensor(data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False):
    """Make a tensor that holds a copy of `data`.

    Args:
        data: a number, numbers in nested lists or tuples, a NumPy array, or a tensor.
        dtype: by default Python's floats become the default dtype, ints int64 and bools bool; arrays keep theirs.
        requires_grad: whether gradients are to be computed for it.

    Raises:
        ValueError: the lists are ragged.
        TypeError: something in `data` is no number.
        RuntimeError: the dtype cannot be told or cannot hold the values, or it has no gradients.

    >>> tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    require_cpu(device)
    refuse_pinning(pin_memory)
    kind = to_numpy_dtype(dtype)
    if isinstance(data, TensorState):
        warnings.warn(COPY_CONSTRUCT, UserWarning, stacklevel=2)
        return leaf(np.array(data._data, kind), requires_grad)
    if isinstance(data, (np.ndarray, np.generic)):
        from_numpy_dtype(data.dtype)
        return leaf(np.array(data, kind, order="C"), requires_grad)
    return leaf(array_from(data, kind), requires_grad)


def from_numpy(array: np.ndarray):
    """Return a tensor that shares the array's memory."""
    return wrap(array)
