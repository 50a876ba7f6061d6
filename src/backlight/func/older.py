"""The names of functorch, PyTorch's former package for `torch.func`: each call warns and says what replaced it."""

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps

from backlight.errors import GraphError, ValueProblem
from backlight.func.forward import jvp as _jvp
from backlight.func.functionalizing import functionalize as _functionalize
from backlight.func.jacobians import hessian as _hessian
from backlight.func.jacobians import jacfwd as _jacfwd
from backlight.func.jacobians import jacrev as _jacrev
from backlight.func.reverse import grad as _grad
from backlight.func.reverse import grad_and_value as _grad_and_value
from backlight.func.reverse import vjp as _vjp
from backlight.func.stateless import functional_call
from backlight.nn.modules.module import Module
from backlight.ops.shape.joining import stack
from backlight.tensor.tensor import Tensor
from backlight.transforms.vmap.api import vmap as _vmap
from backlight.types import Device

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _deprecated(name: str, function: Callable, newer: str | None = None) -> Callable:
    """Return a function that warns as functorch's functions do, and calls the present one."""
    message = (
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3."
        f" Please use `{newer or f'torch.func.{name}'}` instead; see the PyTorch 2.0 release notes and/or the "
        "`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html"
    )

    @wraps(function)
    def deprecated(*args, **kwargs):
        warnings.warn(message, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return deprecated


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters and its buffers: `func(parameters, buffers, *inputs)`."""

    def __init__(self, model: Module):
        super().__init__()
        self.stateless_model = copy.deepcopy(model)
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args, **kwargs):
        """Call the module with the given tensors in place of its own."""
        names = self.param_names + self.buffer_names
        given = dict(zip(names, (*params, *buffers)))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters: `func(parameters, *inputs)`."""

    def forward(self, params: Iterable[Tensor], *args, **kwargs):
        """Call the module with the given tensors in place of its parameters."""
        return super().forward(params, (), *args, **kwargs)


def _state(func: FunctionalModuleWithBuffers, disable_autograd_tracking: bool) -> tuple[tuple, tuple]:
    """Return the parameters and the buffers of a functional module."""
    params = tuple(func.stateless_model.parameters())
    if disable_autograd_tracking:
        for param in params:
            param.requires_grad_(False)
    return params, tuple(func.stateless_model.buffers())


def _make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple]:
    """Return a function of a module's parameters, and copies of the parameters; see `torch.func.functional_call`.

    Raises:
        RuntimeError: the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise GraphError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    func = FunctionalModule(model)
    return func, _state(func, disable_autograd_tracking)[0]


def _make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """Return a function of a module's parameters and buffers, and copies of both."""
    func = FunctionalModuleWithBuffers(model)
    return func, *_state(func, disable_autograd_tracking)


def _combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """Return a function of the state of one of several models, and their parameters and buffers, each stacked.

    Raises:
        RuntimeError: there is no model, or they differ in class or in training mode.
    """
    name = "combine_state_for_ensemble: Expected"
    if len(models) == 0:
        raise GraphError(f"{name} at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise GraphError(f"{name} all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise GraphError(f"{name} all models to be of the same class.")
    funcs, *state = zip(*map(_make_functional_with_buffers, models))
    return funcs[0], *(tuple(stack(each).detach() for each in zip(*one)) for one in state)


def functional_init(model_class: type, ensemble_shape: Sequence[int] = (), device: Device = "cpu") -> Callable:
    """Return a function that makes a module, or several, and returns (weights, function, names).

    Raises:
        ValueError: the function: there are no models, or more than one dim of them.
    """
    return partial(_initialised, model_class, tuple(ensemble_shape), device, False)


def functional_init_with_buffers(
    model_class: type, ensemble_shape: Sequence[int] = (), device: Device = "cpu"
) -> Callable:
    """Return a function that makes a module, or several: (weights, buffers, function, names, names of buffers)."""
    return partial(_initialised, model_class, tuple(ensemble_shape), device, True)


def _initialised(model_class: type, shape: tuple[int, ...], device: Device, with_buffers: bool, *args, **kwargs):
    if len(shape) >= 2:
        raise ValueProblem("NYI: ensemble_shape with more than 1 element")
    if shape and shape[0] <= 0:
        raise ValueProblem(f"num_models {shape[0]} should be > 0")
    models = [model_class(*args, **kwargs).to(device) for _ in range(shape[0] if shape else 1)]
    made = [_make_functional_with_buffers(model) for model in models]
    func = made[0][0]
    if not with_buffers and func.buffer_names:
        raise GraphError(
            "make_functional_deprecated_v1(model): `model` has buffers. Please use "
            "make_functional_with_buffers_deprecated_v1(model) instead."
        )
    weights, buffers = made[0][1:]
    if shape:
        weights, buffers = (
            tuple(stack(each).detach() for each in zip(*state)) for state in zip(*(one[1:] for one in made))
        )
    if with_buffers:
        call = lambda weights, buffers, data: func(weights, buffers, *data)  # noqa: E731
        return weights, buffers, call, func.param_names, func.buffer_names
    return weights, lambda weights, data: func(weights, (), *data), func.param_names


combine_state_for_ensemble = _deprecated(
    "combine_state_for_ensemble", _combine_state_for_ensemble, "torch.func.stack_module_state"
)
functionalize = _deprecated("functionalize", _functionalize)
grad = _deprecated("grad", _grad)
grad_and_value = _deprecated("grad_and_value", _grad_and_value)
hessian = _deprecated("hessian", _hessian)
jacfwd = _deprecated("jacfwd", _jacfwd)
jacrev = _deprecated("jacrev", _jacrev)
jvp = _deprecated("jvp", _jvp)
make_functional = _deprecated("make_functional", _make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(
    "make_functional_with_buffers", _make_functional_with_buffers, "torch.func.functional_call"
)
vjp = _deprecated("vjp", _vjp)
vmap = _deprecated("vmap", _vmap, "torch.vmap")
