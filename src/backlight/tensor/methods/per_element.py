"""Tensor's methods that call a Python function for each element."""

from collections.abc import Callable

import numpy as np

from backlight.dispatch.observation import begin_write, end_write
from backlight.engine.provenance import user_place
from backlight.engine.tensor_state import TensorState, writable
from backlight.errors import GraphError
from backlight.ops.shape.expanding import check_expands
from backlight.system.lazy_import import function_later

_untyped, _typed, _show = [
    function_later("backlight.tensor.storages", name) for name in ("untyped_storage", "typed_storage", "show_memory")
]


class ElementMethods:
    """Tensor's methods below its ops: a Python function on each element, and its storage."""

    __slots__ = ()

    def untyped_storage(self):
        """Return the storage that the tensor shares with its views, as bytes; equal to another of the same memory."""
        return _untyped(self)

    def storage(self):
        """Return the storage that the tensor shares with its views, typed; deprecated in PyTorch."""
        return _typed(self)

    def set_(self, source=None, storage_offset: int = 0, size=None, stride=None):
        """Replace the tensor's memory by that of another tensor, of a storage, or none; return the tensor.

        Args:
            storage_offset, size, stride: which part of it, counted in elements; by default as in the source.

        Raises:
            RuntimeError: one of them requires grad, or has another dtype, or the part is not in the memory.
        """
        return _show(self, source, storage_offset, size, stride)

    def apply_(self, callable: Callable):
        """Replace each element x by callable(x)."""
        return _replaced(self, "apply_", (), callable)

    def map_(self, tensor: TensorState, callable: Callable):
        """Replace each element x by callable(x, y), where y is the element of `tensor` there."""
        return _replaced(self, "map_", (tensor,), callable)

    def map2_(self, x: TensorState, y: TensorState, callable: Callable):
        """Replace each element by callable of it and of the elements of `x` and `y` there."""
        return _replaced(self, "map2_", (x, y), callable)


def _replaced(target: TensorState, name: str, others: tuple, function: Callable):
    """Write the results of a function of each element, or raise PyTorch's error if a gradient would be lost."""
    if any(one._edge is not None for one in (target, *others)):
        raise GraphError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    data = writable(target)
    for one in others:
        check_expands(one._data, data.shape)
    columns = [data, *(np.broadcast_to(one._data, data.shape) for one in others)]
    found = [function(*elements) for elements in zip(*(column.ravel().tolist() for column in columns))]
    begin_write(target, name, user_place(2))
    data[...] = np.array(found, data.dtype).reshape(data.shape)
    end_write(target)
    return target
