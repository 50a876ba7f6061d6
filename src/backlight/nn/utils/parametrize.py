"""Parametrizations: a parameter that is computed, whenever it is read, from others that are trained.

NOTE [Parametrized modules]
The module gets its own subclass of its class, with a property under the parameter's name. The trained tensors move to
`parametrizations.<name>.original` (or `original0`, `original1` …), which are its state_dict's keys.
"""

from collections.abc import Iterator

from backlight.dispatch.arguments.checked import with_checks
from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import TensorState
from backlight.errors import ValueProblem
from backlight.kernels.state_blocks import block
from backlight.nn.modules.container import ModuleDict, ModuleList
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]


CHANGED = "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is enabled."
CHANGED_AGAIN = CHANGED.replace("unless", "unless the")

_cache: dict | None = None  # values computed inside `cached`, by module and name; None outside


@block
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside the block, however often it is read."""
    global _cache
    before, _cache = _cache, {} if _cache is None else _cache
    try:
        yield
    finally:
        _cache = before


class ParametrizationList(ModuleList):
    """The parametrization of one parameter: modules in sequence, and the input tensors of the first."""

    def __init__(self, modules: list[Module], original: Tensor):
        super().__init__(modules)
        try:
            found = self._inverse(original)
        except NotImplementedError:
            found = original
        self.is_tensor = isinstance(found, TensorState)
        self.ntensors = 1 if self.is_tensor else len(found)
        for name, value in zip(self._names(), [found] if self.is_tensor else found):
            if isinstance(original, Parameter):
                setattr(self, name, value if value is original else Parameter(value.detach(), original.requires_grad))
            else:
                self.register_buffer(name, value)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]

    def _inverse(self, value: Tensor):
        """Return the original tensors for `value`, as far as the modules have a right_inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        return value

    def check(self, original: Tensor) -> None:
        """Raise if the computed value differs from the original tensor in dtype or shape."""
        _check_same(original, self(), CHANGED, "unparametrized {}", "parametrized {}")

    def right_inverse(self, value: Tensor) -> None:
        """Set the trained tensors so that the computed parameter is `value`."""
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
    """Compute a parameter or buffer of a module by `parametrization(original)`; several are chained.

    Args:
        parametrization: may have a method right_inverse, which returns the original for a given value.
        unsafe: allow a parametrization that changes the shape or the dtype; else it is called once, to compare them.

    Returns:
        The module, which is changed.

    Raises:
        ValueError: the module has no parameter or buffer of that name, or its shape or dtype would change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parts = module.parametrizations[tensor_name]
        if not unsafe:
            value = parts()
            names = f"module.{tensor_name}.{{}}", f"parametrization(module.{tensor_name}).{{}}"
            _check_same(value, parametrization(value), CHANGED_AGAIN, *names)
        parts.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueProblem(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parts = ParametrizationList([parametrization], original)
    if not unsafe:
        parts.check(original)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = type(f"Parametrized{type(module).__name__}", (type(module),), {"__module__": __name__})
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parts
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _check_same(before: Tensor, after: object, changed: str, name_before: str, name_after: str) -> None:
    """Raise if two tensors differ in dtype or in shape."""
    if not isinstance(after, TensorState):
        raise ValueProblem(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        one, other = getattr(before, what), getattr(after, what)
        if one != other:
            raise ValueProblem(
                f"{changed.format(what)}\n{name_before.format(what)}: {one}\n{name_after.format(what)}: {other}"
            )


def _property(name: str) -> property:
    def read(module: Module) -> Tensor:
        if _cache is None:
            return module.parametrizations[name]()
        key = (id(module), name)
        if key not in _cache:
            _cache[key] = module.parametrizations[name]()
        return _cache[key]

    def write(module: Module, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parametrization: any, or one of this name."""
    parts = getattr(module, "parametrizations", None)
    return isinstance(parts, Module) and (tensor_name is None or tensor_name in parts)


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary parameter again, with the value it has now.

    Args:
        leave_parametrized: False restores the original tensor instead.

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


globals().update(with_checks(globals(), __all__, __name__))
