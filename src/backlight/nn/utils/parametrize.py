"""Parametrizations: a parameter that is computed, whenever it is read, from others that are trained.

NOTE [Parametrized modules]
The module gets its own subclass of its class, with a property under the parameter's name. The trained tensors move to
`parametrizations.<name>.original` (or `original0`, `original1` …), which are its state_dict's keys.
"""

import contextlib
import copy
from collections.abc import Iterator, Sequence

from backlight.dispatch.arguments.checked import with_checks
from backlight.engine.grad_mode import no_grad
from backlight.engine.tensor_state import TensorState
from backlight.errors import GraphError, ValueProblem
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
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


CHANGED = "Registering a parametrization may not change the {} of the tensor, unless `unsafe` flag is enabled."
WRONG_INVERSE = "'right_inverse' must return a Tensor or a Sequence of tensors"
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
    """The parametrization of one parameter: modules in sequence, and the input tensors of the first.

    A parameter that stays one tensor is the same object before and after, so that its optimizer keeps it.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not len(modules):
            raise ValueProblem("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, kind = original.shape, original.dtype
        found = self._inverse(original)
        self.is_tensor = isinstance(found, TensorState)
        if not self.is_tensor and not isinstance(found, Sequence):
            raise ValueProblem(f"{WRONG_INVERSE} (list, tuple...). Got {type(found).__name__}")
        self.ntensors = 1 if self.is_tensor else len(found)
        if self.is_tensor:
            if found.dtype != kind:
                raise ValueProblem(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {kind}\nright_inverse(original).dtype: {found.dtype}"
                )
            _show(original, found)
            _register(self, "original", original)
        else:
            for number, part in enumerate(found):
                self._register_part(number, part, original)
        if not unsafe:
            _check_same((kind, shape), self(), CHANGED, "unparametrized {}", "parametrized {}")

    def _register_part(self, number: int, part: Tensor, original: Tensor) -> None:
        if not isinstance(part, TensorState):
            raise ValueProblem(
                f"{WRONG_INVERSE} (list, tuple...). Got element {number} of the sequence with type "
                f"{type(part).__name__}."
            )
        part = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
        _register(self, f"original{number}", part.requires_grad_(original.requires_grad))

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]

    def _inverse(self, value: Tensor):
        """Return the original tensors for `value`, as far as the modules have a right_inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        value = module.right_inverse(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the trained tensors so that the computed parameter is `value`.

        Raises:
            RuntimeError: one of the modules has no right_inverse.
            ValueError: the result of right_inverse does not match the trained tensors.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise GraphError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_original(value)
            else:
                self._set_originals(value)

    def _set_original(self, value: Tensor) -> None:
        if not isinstance(value, TensorState):
            raise ValueProblem(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueProblem(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                f"{self.original.dtype}"
            )
        _show(self.original, value)

    def _set_originals(self, values: Sequence[Tensor]) -> None:
        start = "'right_inverse' must return a sequence of tensors"
        if not isinstance(values, Sequence):
            raise ValueProblem(f"{start}. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueProblem(f"{start} of length {self.ntensors}. Got a sequence of length {len(values)}.")
        for number, (name, value) in enumerate(zip(self._names(), values)):
            own = getattr(self, name)
            if not isinstance(value, TensorState):
                raise ValueProblem(
                    f"{start} or reference-type opaques. Got element {number} of type {type(value).__name__}."
                )
            if own.dtype != value.dtype:
                raise ValueProblem(
                    f"Tensor {number} returned by `right_inverse` has dtype {value.dtype} while `{name}` has dtype "
                    f"{own.dtype}"
                )
            _show(own, value)

    def forward(self) -> Tensor:
        """Compute the parameter."""
        first, *others = self
        value = first(*(getattr(self, name) for name in self._names()))
        for module in others:
            value = module(value)
        return value


def _show(tensor: Tensor, value: Tensor) -> None:
    """Let a tensor have the memory of another one, as `set_` does."""
    if tensor is not value:
        tensor.data = value.detach()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by `parametrization(original)`; several are chained.

    Args:
        parametrization: a module; it may have a method right_inverse, which returns the original for a given value.
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
            _check_another(getattr(module, tensor_name), parametrization, f"module.{tensor_name}")
        parts.append(parametrization)
        parts.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueProblem(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parts = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parts
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _own_class(module: Module) -> None:
    """Give a module a subclass of its own, which can be copied but not pickled."""

    def refuse(self: Module):
        raise GraphError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deepcopied(self: Module, memo: dict) -> Module:
        replica = object.__new__(type(self))
        memo[id(self)] = replica
        replica.__setstate__(copy.deepcopy(before.__getstate__(self), memo))
        return replica

    before = type(module)
    names = {"__module__": __name__, "__getstate__": refuse}
    if not hasattr(before, "__deepcopy__"):
        names["__deepcopy__"] = deepcopied
    module.__class__ = type(f"Parametrized{before.__name__}", (before,), names)


def _check_same(before: tuple, after: object, changed: str, name_before: str, name_after: str) -> None:
    """Raise if a computed value is no tensor of the dtype and the shape that there were before."""
    if not isinstance(after, TensorState):
        raise ValueProblem(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what, one in zip(("dtype", "shape"), before):
        other = getattr(after, what)
        if one != other:
            raise ValueProblem(
                f"{changed.format(what)}\n{name_before.format(what)}: {one}\n{name_after.format(what)}: {other}"
            )


def _check_another(value: Tensor, parametrization: Module, name: str) -> None:
    """Raise if one more parametrization, or its right_inverse, would change the dtype or the shape."""
    found, own = parametrization(value), (value.dtype, value.shape)
    _check_same(own, found, CHANGED_AGAIN, f"{name}.{{}}", f"parametrization({name}).{{}}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(found)
    except NotImplementedError:
        return
    if not isinstance(back, TensorState):
        raise ValueProblem(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what, one in zip(("dtype", "shape"), own):
        other = getattr(back, what)
        if one != other:
            raise ValueProblem(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as {name}, unless "
                f"the `unsafe` flag is enabled.\n{name}.{what}: {one}\nreturned {what}: {other}"
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


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy the parametrizations of a module, and their tensors, to another module; return the other module.

    Args:
        tensor_name: the parameter to transfer; by default all that are parametrized.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        given = from_module.parametrizations[name]
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        for original, tensor in (given._parameters | given._buffers).items():
            setattr(to_module.parametrizations[name], original, tensor)
    return to_module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary parameter again, with its current value.

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
    if parts.is_tensor:
        tensor = parts.original
        if leave_parametrized:
            with no_grad():
                _show(tensor, getattr(module, tensor_name))
    else:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


globals().update(with_checks(globals(), __all__, __name__))
