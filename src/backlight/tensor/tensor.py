"""The Tensor class: slots and state from the graph's floor, methods from one file a family."""

import backlight.ops.generate  # noqa: F401 - declares how ops become code
from backlight.graph.state import TensorState, tensor_class
from backlight.ops import compiled
from backlight.ops.arguments.checked import check_methods
from backlight.tensor.conversion_methods import ConversionMethods
from backlight.tensor.copy_methods import CopyMethods
from backlight.tensor.creation_methods import CreationMethods
from backlight.tensor.element_methods import ElementMethods
from backlight.tensor.graph_methods import GraphMethods
from backlight.tensor.index_methods import IndexMethods
from backlight.tensor.legacy import old_style
from backlight.tensor.linear_methods import LinearMethods
from backlight.tensor.pointwise_methods import PointwiseMethods
from backlight.tensor.random_methods import RandomMethods
from backlight.tensor.reduction_methods import ReductionMethods
from backlight.tensor.shape_methods import ShapeMethods
from backlight.tensor.subclasses import SubclassMethods, made_subclass
from backlight.tensor.value_methods import ValueMethods


@tensor_class
class Tensor(
    GraphMethods,
    ValueMethods,
    ConversionMethods,
    CreationMethods,
    RandomMethods,
    PointwiseMethods,
    ReductionMethods,
    ShapeMethods,
    CopyMethods,
    ElementMethods,
    IndexMethods,
    LinearMethods,
    SubclassMethods,
    TensorState,
):
    """An array of numbers that can remember how it was computed."""

    __module__ = "backlight"
    __slots__ = ()

    def __new__(cls, *data, device=None):
        """Make a tensor the old way: `Tensor(2, 3)` of sizes, `Tensor([1, 2])` of numbers. Ops do not pass here."""
        return old_style(cls, data, device)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        made_subclass(cls)


compiled.start(Tensor)
check_methods(Tensor)
