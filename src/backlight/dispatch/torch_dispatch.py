"""`__torch_dispatch__`: what handles calls below autograd, for the engine, which cannot import it.

NOTE [Below autograd]
A `TorchDispatchMode` is an interpreter (NOTE [Interpreters]); a tensor class with `__torch_dispatch__` is called by
`dispatch` after them. Either gets an op under PyTorch's name, with recording off; the node is made from the op's
declaration afterwards, around the result (transforms/torch_dispatch.py). While a mode is on in this thread, or such a
class is alive, a backward runs on tensors, so that its ops are handled too.
"""

from collections.abc import Callable


class _TorchDispatch:
    """What transforms/torch_dispatch.py puts here, and for whom.

    Attributes:
        classes: how many tensor classes with `__torch_dispatch__` are alive.
        modes: those that are on, in all threads.
        made: notes a new class with `__torch_dispatch__`.
        call: handles a call that has an argument of such a class: (op, function, args, kwargs).
        ones_like: returns the gradient that a backward starts with.
        accumulate: adds a gradient to a leaf's `.grad`.
        backward: returns the gradients of a node.
        saved: returns a saved output as a tensor, once more.
    """

    __slots__ = ("accumulate", "backward", "call", "classes", "made", "modes", "ones_like", "saved")

    def __init__(self):
        self.classes, self.modes = 0, set()

    @property
    def active(self) -> bool:
        """Whether a mode is on or a class is alive."""
        return bool(self.modes) or self.classes > 0


torch_dispatch = _TorchDispatch()


def has_handler(value: object) -> bool:
    """Tell whether a value is a tensor of a class with `__torch_dispatch__` of its own."""
    return hasattr(value, "_edge") and hasattr(type(value), "__torch_dispatch__") and handles(type(value))


def handles(cls: type) -> bool:
    """Tell whether a class has a `__torch_dispatch__` that is not switched off."""
    handler = getattr(cls, "__torch_dispatch__", None)
    return handler is not None and handler is not disabled


def disabled(func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None):
    """Call the op: the `__torch_dispatch__` of a class that has none of its own."""
    return func(*args, **(kwargs or {}))
