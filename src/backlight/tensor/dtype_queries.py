"""Queries about tensors and dtypes: kinds, and type promotion."""

import numpy as np

from backlight import dtypes
from backlight.codegen.runtime_support import is_number
from backlight.devices import CHOSEN, CPU, device, require_cpu
from backlight.devices import device as device_kind
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError
from backlight.ops import type_promotion
from backlight.ops.elementwise.copying import type_name
from backlight.tensor.storages import TypedStorage, UntypedStorage
from backlight.types import Device

__all__ = [
    "can_cast",
    "get_default_device",
    "get_device",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "numel",
    "promote_types",
    "result_type",
    "set_default_device",
    "typename",
]


def _dtype(function: str, name: str, place: int, kind: object) -> dtypes.dtype:
    if not isinstance(kind, dtypes.dtype):
        raise ArgumentError(
            f"{function}(): argument '{name}' (position {place}) must be torch.dtype, not {type(kind).__name__}"
        )
    return kind


def promote_types(type1: dtypes.dtype, type2: dtypes.dtype) -> dtypes.dtype:
    """Return the dtype that holds both dtypes: floats win over integers, integers over bool.

    >>> promote_types(dtypes.int32, dtypes.float16)
    torch.float16
    """
    first, second = _dtype("promote_types", "type1", 1, type1), _dtype("promote_types", "type2", 2, type2)
    return from_numpy_dtype(type_promotion.promote_types(first.numpy, second.numpy))


def result_type(tensor1: TensorState | float, tensor2: TensorState | float) -> dtypes.dtype:
    """Return the result dtype of two tensors or numbers; tensors with dims take precedence over 0-d ones."""
    pair = (tensor1, tensor2)
    arrays = [value._data for value in pair if isinstance(value, TensorState)]
    numbers = [value.item() if isinstance(value, np.generic) else value for value in pair if is_number(value)]
    return from_numpy_dtype(type_promotion.common_dtype(arrays, numbers))


def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """Tell whether a dtype may be cast to another under PyTorch's rules: no float to integer, no number to bool."""
    start, end = _dtype("can_cast", "from_", 1, from_), _dtype("can_cast", "to", 2, to)
    return type_promotion.category(start.numpy) <= type_promotion.category(end.numpy)


def _tensor(function: str, input: TensorState) -> TensorState:
    if not isinstance(input, TensorState):
        raise ArgumentError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


def is_tensor(obj: object) -> bool:
    """Tell whether an object is a tensor."""
    return isinstance(obj, TensorState)


def is_storage(obj: object) -> bool:
    """Tell whether an object is the storage of a tensor, as `untyped_storage()` and `storage()` return it."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def is_floating_point(input: TensorState) -> bool:
    """Tell whether a tensor's elements are floats."""
    return type_promotion.is_float(_tensor("is_floating_point", input)._data.dtype)


def is_complex(input: TensorState) -> bool:
    """Tell whether a tensor's elements are complex."""
    return _tensor("is_complex", input).is_complex()


def is_signed(input: TensorState) -> bool:
    """Tell whether a tensor's dtype holds negative numbers."""
    return input.is_signed()


def is_inference(input: TensorState) -> bool:
    """Tell whether a tensor was made in inference mode."""
    return _tensor("is_inference", input).is_inference()


def is_nonzero(input: TensorState) -> bool:
    """Tell whether a tensor's only element is not 0."""
    return _tensor("is_nonzero", input).is_nonzero()


def is_same_size(input: TensorState, other: TensorState) -> bool:
    """Tell whether two tensors have the same shape."""
    return input.is_same_size(other)


def numel(input: TensorState) -> int:
    """Return how many elements a tensor has."""
    return _tensor("numel", input)._data.size


def typename(obj: object) -> str:
    """Return the name of an object's type; of a tensor the old one, `torch.FloatTensor`."""
    if isinstance(obj, TensorState):
        return type_name(obj._data.dtype)
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def get_device(input: TensorState) -> int:
    """Return the number of a tensor's accelerator: −1 on the CPU."""
    return _tensor("get_device", input).get_device()


def get_default_device() -> device:
    """Return the device of new tensors: the CPU, or inside `with torch.device("meta")` that."""
    return CHOSEN.blocks[-1] if CHOSEN.blocks else CPU


def set_default_device(device: Device) -> None:
    """Set the device of new tensors: "cpu", "meta", or None for the CPU.

    Raises:
        RuntimeError: it is another one.
    """
    chosen = CPU if device is None else device_kind(device)
    if chosen.type != "meta":
        require_cpu(chosen)
    CHOSEN.blocks = () if device is None else (chosen,)
