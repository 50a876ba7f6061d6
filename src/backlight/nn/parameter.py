"""`Parameter` and `Buffer`: tensors that a module counts among its own when they are assigned as attributes."""

import numpy as np

from backlight.errors import ArgumentError
from backlight.graph.state import TensorState, new, storage_of, wrap, writable
from backlight.tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A leaf that a module trains: it shares the memory of `data` and requires grad unless told otherwise.

    >>> import backlight as torch
    >>> torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()

    _printed_as = "tensor"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = wrap(np.empty(0, np.float32))
        if not isinstance(data, TensorState):
            raise ArgumentError(
                f"Parameter data has to be a tensor, but got {type(data).__name__}: wrap it with torch.tensor(…) first"
            )
        made = new(cls)
        made._data = writable(data)
        made._edge = None
        made._storage = storage_of(data)
        made._view = None
        return made.requires_grad_(requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        """All is done in `__new__`, where the memory is known."""

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(wrap(np.array(self._data)), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return (_rebuilt, (type(self), np.array(self._data), self.requires_grad))

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def _rebuilt(cls: type, array: np.ndarray, requires_grad: bool) -> Parameter:
    return cls(wrap(array), requires_grad)


class Buffer(Tensor):
    """A tensor that belongs to a module's state and is not trained: assigning it registers it.

    Args:
        persistent: whether it is part of `state_dict()`.
    """

    __slots__ = ("persistent",)

    _printed_as = "tensor"

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        if data is None:
            data = wrap(np.empty(0, np.float32))
        made = new(cls)
        made._data = writable(data)
        made._edge = None
        made._storage = storage_of(data)
        made._view = None
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        """All is done in `__new__`, where the memory is known."""
