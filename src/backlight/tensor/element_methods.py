"""Tensor's methods that call a Python function for each element."""

import numpy as np

from backlight.errors import GraphError
from backlight.graph.provenance import user_place
from backlight.graph.state import writable
from backlight.graph.watching import count_write
from backlight.ops.repeating import check_expands


class ElementMethods:
    """The part of Tensor that calls a Python function for each element, in place; it is slow, and is not recorded."""

    __slots__ = ()

    def apply_(self, callable):
        """Replace each element x by callable(x)."""
        return _replaced(self, "apply_", (), callable)

    def map_(self, tensor, callable):
        """Replace each element x by callable(x, y), where y is the element of `tensor` there."""
        return _replaced(self, "map_", (tensor,), callable)

    def map2_(self, x, y, callable):
        """Replace each element by callable of it and of the elements of `x` and `y` there."""
        return _replaced(self, "map2_", (x, y), callable)


def _replaced(target, name: str, others: tuple, function):
    """Write what a function makes of each element, or raise PyTorch's error where a gradient would be lost."""
    if any(one._edge is not None for one in (target, *others)):
        raise GraphError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    data = writable(target)
    for one in others:
        check_expands(one._data, data.shape)
    columns = [data, *(np.broadcast_to(one._data, data.shape) for one in others)]
    found = [function(*elements) for elements in zip(*(column.ravel().tolist() for column in columns))]
    data[...] = np.array(found, data.dtype).reshape(data.shape)
    count_write(target, name, user_place(2))
    return target
