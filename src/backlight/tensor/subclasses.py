"""Subclasses of Tensor: ops return the same class (NOTE [Overriding] in dispatch/torch_function.py)."""

from collections.abc import Callable, Sequence

from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.torch_function import DisableTorchFunctionSubclass, disabled, installed, overloads
from backlight.engine.tensor_state import LEAF, TensorState, the_tensor_class
from backlight.torch_api.legacy_constructors import recast


class SubclassMethods:
    """The part of Tensor that its subclasses inherit."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None):
        """Call a function with tensors of this class, and return its result as one of this class.

        A subclass that overrides this sees all that is done with its tensors, and calls `super().__torch_function__`
        for what it leaves as it is.
        """
        if not all(issubclass(cls, one) for one in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
            return out if func in _left_plain() else _as_class(out, cls)

    def as_subclass(self, cls: type):
        """Return an instance of a subclass of Tensor that shares memory and history with this tensor."""
        if self._edge is None:
            return recast(self, cls)
        with DisableTorchFunctionSubclass():
            return recast(TENSOR_OPS.alias(self), cls)

    @staticmethod
    def _make_subclass(cls: type, data: TensorState, require_grad: bool = False):
        made = recast(the_tensor_class().detach(data), cls)
        made._edge = LEAF if require_grad else None
        return made


def _as_class(out, cls: type):
    """Return a result with each tensor in it as one of a class."""
    if cls is the_tensor_class():
        return out
    if isinstance(out, TensorState) and not isinstance(out, cls):
        out = out.as_subclass(cls)
    if isinstance(out, (tuple, list)):
        parts = [_as_class(one, cls) for one in out]
        out = type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return out


def _left_plain() -> tuple:
    tensor = the_tensor_class()
    return tensor._base.__get__, tensor.grad.__get__


def made_subclass(cls: type) -> None:
    """Let public functions ask a new subclass, if it answers; our own classes answer nothing."""
    if cls.__module__.partition(".")[0] == "backlight":
        cls.__torch_function__ = staticmethod(disabled)
    elif overloads(cls):
        installed.install_for(cls)
