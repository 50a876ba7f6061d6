"""The Tensor class: its state from `engine`, its methods from `tensor/methods`, and what its subclasses inherit.

Ops return tensors of the class of their arguments: NOTE [Overriding] in dispatch/torch_function.py.
"""

from collections.abc import Callable, Sequence

import backlight.codegen.generate  # noqa: F401 - declares how ops become code
from backlight.codegen import core_ops
from backlight.codegen.op_table import TENSOR_OPS
from backlight.dispatch.arguments.checked import check_methods
from backlight.dispatch.dispatcher import dispatching
from backlight.dispatch.torch_dispatch import disabled as disabled_dispatch
from backlight.dispatch.torch_dispatch import handles, torch_dispatch
from backlight.dispatch.torch_function import (
    DisableTorchFunctionSubclass,
    disabled,
    implements_torch_function,
    overrides_state,
)
from backlight.engine.tensor_state import LEAF, TensorState, tensor_class, the_tensor_class
from backlight.tensor.methods.autograd import GraphMethods
from backlight.tensor.methods.conversion import ConversionMethods
from backlight.tensor.methods.creation import CreationMethods
from backlight.tensor.methods.ops import OperatorMethods, OpMethods
from backlight.tensor.methods.random import RandomMethods
from backlight.tensor.methods.sparse import SparseMethods
from backlight.tensor.methods.values import ValueMethods
from backlight.torch_api.legacy_constructors import old_style, recast


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

    __torch_dispatch__ = staticmethod(disabled_dispatch)

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
    """Let public functions call the handlers of a new subclass, if it has any; our own classes have none."""
    if handles(cls):
        torch_dispatch.made(cls)
    if cls.__module__.partition(".")[0] == "backlight":
        cls.__torch_function__ = staticmethod(disabled)
    elif implements_torch_function(cls):
        overrides_state.install_for(cls)


@tensor_class
class Tensor(
    GraphMethods,
    ValueMethods,
    ConversionMethods,
    CreationMethods,
    RandomMethods,
    SparseMethods,
    OpMethods,
    OperatorMethods,
    SubclassMethods,
    TensorState,
):
    """An array of numbers that can record how it was computed."""

    __module__ = "backlight"
    __slots__ = ()

    def __new__(cls, *data, device=None):
        """Make a tensor the old way: `Tensor(2, 3)` of sizes, `Tensor([1, 2])` of numbers. Ops do not call this."""
        return old_style(cls, data, device)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        made_subclass(cls)


core_ops.start(Tensor)
check_methods(Tensor)
dispatching.composites.add(Tensor.detach)  # an op in PyTorch
