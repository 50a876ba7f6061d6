"""The Tensor class: its state from `engine`, its methods from one file for each family."""

import backlight.codegen.generate  # noqa: F401 - declares how ops become code
from backlight.codegen import core_ops
from backlight.dispatch.arguments.checked import check_methods
from backlight.engine.tensor_state import TensorState, tensor_class
from backlight.tensor.methods.autograd import GraphMethods
from backlight.tensor.methods.conversion import ConversionMethods
from backlight.tensor.methods.creation import CreationMethods
from backlight.tensor.methods.operators import OperatorMethods
from backlight.tensor.methods.ops import OpMethods
from backlight.tensor.methods.per_element import ElementMethods
from backlight.tensor.methods.random import RandomMethods
from backlight.tensor.methods.shape import ShapeMethods
from backlight.tensor.methods.values import ValueMethods
from backlight.tensor.subclasses import SubclassMethods, made_subclass
from backlight.torch_api.legacy_constructors import old_style


@tensor_class
class Tensor(
    GraphMethods,
    ValueMethods,
    ConversionMethods,
    CreationMethods,
    RandomMethods,
    OpMethods,
    OperatorMethods,
    ShapeMethods,
    ElementMethods,
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
