"""How tensors are copied and pickled: which of them share memory afterwards.

NOTE [Copies share memory]
Tensors that share a storage (views, detached twins) lie in one array, whoever made it. `deepcopy` copies the whole of
that array, once: its memo finds the second tensor's to be the first's. A tensor without a storage shares nothing. In a
pickle they part, as in PyTorch: only the same tensor twice stays one. (`save` keeps them together.)
"""

import copy
import warnings

import numpy as np

from backlight.engine.storage import Storage, stored_in
from backlight.engine.tensor_state import TensorState, storage_for_alias, writable
from backlight.torch_api.legacy_constructors import instance

HOOK_NOT_SERIALIZED = (
    "backward hook {} on tensor will not be serialized.  If this is expected, you can decorate the function with "
    "@torch.utils.hooks.unserializable_hook to suppress this warning"
)


def whole_memory(tensor) -> np.ndarray | None:
    """Return the array in which a tensor and those that share its storage lie; None if it is alone, or has gaps."""
    if type(tensor._storage) is not Storage:
        return None
    whole = writable(tensor)
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return whole if whole.flags.forc and whole.size else None


def layout_in(whole: np.ndarray, part: np.ndarray) -> tuple:
    """Return where a part of an array lies in it: (shape, dtype, offset in bytes, strides)."""
    start, own = (array.__array_interface__["data"][0] for array in (whole, part))
    return part.shape, part.dtype, own - start, part.strides


def part_of(whole: np.ndarray, layout: tuple) -> np.ndarray:
    """Return the part of an array that `layout_in` describes."""
    shape, dtype, offset, strides = layout
    return np.ndarray(shape, dtype, whole.reshape(-1, order="A").view(np.uint8), offset, strides)


def deep_twin(tensor, memo: dict):
    """Return a leaf of the tensor's class over a copy of its memory."""
    whole = whole_memory(tensor)
    if whole is None:
        return instance(type(tensor), np.array(tensor._data), tensor.requires_grad)
    key = ("memory", id(tensor._storage), id(whole))
    if key not in memo:
        copied = np.array(whole)
        memo[key] = copied, stored_in(copied), whole  # `whole` lives on, so that its id stays its own
    copied, storage, _ = memo[key]
    twin = instance(type(tensor), part_of(copied, layout_in(whole, tensor._data)), tensor.requires_grad)
    return _in_storage(twin, storage)


def _in_storage(made, storage: Storage | None):
    if made._storage is None:
        made._storage = storage
    return made


class Sharing:
    """A tensor's storage on its way to `rebuilt`: `copy.copy` hands it over, a pickle leaves it behind."""

    def __init__(self, storage=None):
        self.storage = storage

    def __reduce__(self):
        return Sharing, ()


def described(tensor) -> tuple:
    """Return what a pickle, or `copy.copy`, calls to make the tensor again, and with what."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(HOOK_NOT_SERIALIZED.format(repr(hook)), UserWarning, stacklevel=3)
    memory, layout = writable(tensor).view(), None
    whole = None if memory.flags.forc else whole_memory(tensor)
    if whole is not None:
        memory, layout = whole.view(), layout_in(whole, memory)
    sharing = Sharing(storage_for_alias(tensor))
    return rebuilt, (type(tensor), memory, layout, sharing, tensor.requires_grad, own_attributes(tensor))


def rebuilt(cls: type, memory: np.ndarray, layout: tuple | None, sharing, requires_grad: bool, attributes: dict):
    """Return the leaf that `described` describes."""
    data = memory if layout is None else part_of(memory, layout)
    made = _in_storage(instance(cls, data, requires_grad), sharing.storage)
    made._data = data
    made.__dict__.update(attributes)
    return made


def own_attributes(tensor) -> dict:
    """Return what a user attached to a tensor, without the graph's own slots."""
    return {name: value for name, value in vars(tensor).items() if name not in vars(TensorState)}


def deep_attributes(tensor, twin, memo: dict) -> None:
    """Copy to a twin the gradient and what a user attached."""
    if tensor._grad is not None:
        twin._grad = copy.deepcopy(tensor._grad, memo)
    twin.__dict__.update(copy.deepcopy(own_attributes(tensor), memo))
