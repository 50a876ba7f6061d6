"""Parametrizations: a parameter that is computed, whenever it is read, from others that are trained.

NOTE [Parametrized modules]
The module gets a class of its own, below the one it had, with a property under the parameter's name. What is trained
moves to `parametrizations.<name>.original` (or `original0`, `original1` …), which are its state_dict's keys.
"""

from backlight.errors import ValueProblem
from backlight.graph.modes import no_grad
from backlight.graph.state import TensorState
from backlight.nn.modules.container import ModuleDict, ModuleList
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor

__all__ = ["ParametrizationList", "is_parametrized", "register_parametrization", "remove_parametrizations"]


class ParametrizationList(ModuleList):
    """What computes one parameter: modules one after the other, and the tensors that the first is given."""

    def __init__(self, modules: list[Module], original: Tensor):
        super().__init__(modules)
        found = self._inverse(original)
        self.is_tensor = isinstance(found, TensorState)
        self.ntensors = 1 if self.is_tensor else len(found)
        for name, value in zip(self._names(), [found] if self.is_tensor else found):
            if isinstance(original, Parameter):
                setattr(self, name, value if value is original else Parameter(value.detach(), original.requires_grad))
            else:
                self.register_buffer(name, value)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]

    def _inverse(self, value):
        """Return the tensors from which `value` is computed, as far as the modules have a right_inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the tensors that are trained so that `value` is what is computed from them."""
        found = self._inverse(value)
        with no_grad():
            for name, part in zip(self._names(), [found] if self.is_tensor else found):
                getattr(self, name).copy_(part)

    def forward(self) -> Tensor:
        """Compute the parameter."""
        first, *others = self
        value = first(*(getattr(self, name) for name in self._names()))
        for module in others:
            value = module(value)
        return value


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by `parametrization(original)`; several follow each other.

    Args:
        parametrization: may have a method right_inverse, which returns what to train for a given value.
        unsafe: accepted; shapes and dtypes are not compared.

    Returns:
        The module, which is changed.

    Raises:
        ValueError: the module has no parameter or buffer of that name.
    """
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        if hasattr(parametrization, "right_inverse"):
            with no_grad():
                parts.right_inverse(parametrization.right_inverse(parts()))
        parts.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueProblem(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = type(f"Parametrized{type(module).__name__}", (type(module),), {"__module__": __name__})
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = ParametrizationList([parametrization], original)
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _property(name: str) -> property:
    def read(module: Module) -> Tensor:
        return module.parametrizations[name]()

    def write(module: Module, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parametrization: any, or one of this name."""
    parts = module._modules.get("parametrizations")
    return parts is not None and (tensor_name is None or tensor_name in parts)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary parameter again, with the value it has now.

    Args:
        leave_parametrized: False gives it the value of what was trained instead.

    Raises:
        ValueError: it is not parametrized; or several tensors were trained, and `leave_parametrized` is False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueProblem(f"Module {module} does not have a parametrization on {tensor_name}")
    parts = module.parametrizations[tensor_name]
    if not leave_parametrized and not parts.is_tensor:
        raise ValueProblem(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    with no_grad():
        value = parts() if leave_parametrized else parts.original
    trained = [getattr(parts, name) for name in parts._names()]
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(trained[0], Parameter):
        module.register_parameter(tensor_name, Parameter(value.detach(), trained[0].requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    return module
