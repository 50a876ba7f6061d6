"""Copying and pickling of tensors, and which of them share memory afterwards.

NOTE [Copies share memory]
Tensors that share a storage (views, detached aliases) are parts of one array. `deepcopy` copies that full array once:
its memo maps later tensors to the same copy. A tensor without a storage shares nothing. In a pickle each gets its own
memory, as in PyTorch; only the same tensor twice stays one. (`save` keeps them together.)
"""

import copy
import warnings

import numpy as np

from backlight.engine.storage import Storage, stored_in
from backlight.engine.tensor_state import TensorState, storage_for_alias, wrap, writable
from backlight.kernels.memory_order import copied_in, is_dense, outer_first
from backlight.sizes import Size
from backlight.torch_api.legacy_constructors import instance

HOOK_NOT_SERIALIZED = (
    "backward hook {} on tensor will not be serialized.  If this is expected, you can decorate the function with "
    "@torch.utils.hooks.unserializable_hook to suppress this warning"
)


def base_array(tensor: TensorState) -> np.ndarray | None:
    """Return the base array of all tensors that share a tensor's storage; None if there is only one, or it has gaps."""
    if type(tensor._storage) is not Storage:
        return None
    base = writable(tensor)
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base if base.flags.forc and base.size else None


def layout_in(base: np.ndarray, part: np.ndarray) -> tuple:
    """Return the layout of a part of an array: (shape, dtype, offset in bytes, strides)."""
    start, own = (array.__array_interface__["data"][0] for array in (base, part))
    return part.shape, part.dtype, own - start, part.strides


def part_of(base: np.ndarray, layout: tuple) -> np.ndarray:
    """Return the part of an array that `layout_in` describes."""
    shape, dtype, offset, strides = layout
    return np.ndarray(shape, dtype, base.reshape(-1, order="A").view(np.uint8), offset, strides)


def deepcopied(tensor: TensorState, memo: dict):
    """Return a leaf of the tensor's class over a copy of its memory."""
    base = base_array(tensor)
    if base is None:
        return instance(type(tensor), copied_in(np.asarray(tensor._data), None), tensor.requires_grad)
    key = ("memory", id(tensor._storage), id(base))
    if key not in memo:
        copied_base = np.array(base)
        memo[key] = copied_base, stored_in(copied_base), base  # keeping `base` alive keeps its id unique
    copied_base, storage, _ = memo[key]
    copied = instance(type(tensor), part_of(copied_base, layout_in(base, tensor._data)), tensor.requires_grad)
    return _in_storage(copied, storage)


def _in_storage(made: TensorState, storage: Storage | None):
    if made._storage is None:
        made._storage = storage
    return made


class Sharing:
    """Carries a tensor's storage to `rebuilt`: `copy.copy` passes it on, a pickle drops it."""

    def __init__(self, storage: Storage | None = None):
        self.storage = storage

    def __reduce__(self):
        return Sharing, ()


def reduce_arguments(tensor: TensorState) -> tuple:
    """Return the function and the arguments that rebuild the tensor, for pickle and `copy.copy`."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(HOOK_NOT_SERIALIZED.format(repr(hook)), UserWarning, stacklevel=3)
    memory, layout = writable(tensor).view(), None
    base = None if memory.flags.forc else base_array(tensor)
    if base is None and not memory.flags.forc and is_dense(memory):
        base = memory.transpose(outer_first(memory)).reshape(-1)
    if base is not None:
        memory, layout = base.view(), layout_in(base, memory)
    sharing = Sharing(storage_for_alias(tensor))
    return rebuilt, (type(tensor), memory, layout, sharing, tensor.requires_grad, own_attributes(tensor))


def rebuilt(cls: type, memory: np.ndarray, layout: tuple | None, sharing, requires_grad: bool, attributes: dict):
    """Rebuild a leaf from the arguments of `reduce_arguments`."""
    data = memory if layout is None else part_of(memory, layout)
    made = _in_storage(instance(cls, data, requires_grad), sharing.storage)
    made._data = data
    made.__dict__.update(attributes)
    return made


def sparse_parts(tensor: TensorState) -> tuple:
    """Return what a file keeps of a sparse tensor: indices, values, size, and whether it is coalesced."""
    data = tensor._data
    return wrap(data.indices), wrap(data.values), Size(data.shape), data.coalesced


def own_attributes(tensor: TensorState) -> dict:
    """Return the attributes that a user set on a tensor, without the engine's slots."""
    return {name: value for name, value in vars(tensor).items() if name not in vars(TensorState)}


def deepcopy_attributes(tensor: TensorState, copied: TensorState, memo: dict) -> None:
    """Deepcopy the gradient and the user's attributes to a copy of a tensor."""
    if tensor._grad is not None:
        copied._grad = copy.deepcopy(tensor._grad, memo)
    copied.__dict__.update(copy.deepcopy(own_attributes(tensor), memo))
