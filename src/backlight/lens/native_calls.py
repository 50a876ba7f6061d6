"""Which Python functions of our engine are reported to watchers besides ops: creation, writes, exits, modules."""

import sys
from types import FunctionType

from backlight.autograd.function import Function
from backlight.codegen.declaration import TABLE
from backlight.dispatch.arguments.checked import unwrapped
from backlight.dispatch.dispatcher import InterceptedFunction, register_intercepted, rename_ops
from backlight.dispatch.observation import local, notify_call
from backlight.dispatch.profile_names import public_name
from backlight.nn.modules.module import Module
from backlight.ops.indexing import index_selection, masking
from backlight.tensor import creation, factories, random_factories, ranges
from backlight.tensor.tensor import Tensor

METHODS = (
    *("detach", "numpy", "item", "tolist", "__array__", "__bool__", "__float__", "__int__"),  # out of the graph
    *("new_empty", "new_ones", "new_tensor", "new_zeros", "new_full", "__array_wrap__"),
    *("__setitem__", "register_hook", "retain_grad"),
)
REPORT_THEMSELVES = ("writes", "reshapes")  # what functions of ops/inplace.py have
_noted: list[bool] = []


def note_functions() -> None:
    """Note all of them once, when the first watcher is added."""
    if _noted:
        return
    _noted.append(True)
    writes = (name for name in dir(Tensor) if name.endswith("_") and not name.endswith("__"))
    data = next(vars(kind)["data"] for kind in Tensor.__mro__ if "data" in vars(kind))
    named = {
        getattr(module, name): name
        for module in (creation, random_factories, factories, ranges)
        for name in module.__all__
    }
    named |= {getattr(Tensor, name): name for name in (*METHODS, *writes)}
    named |= {data.fget: "data", data.fset: "data", masking.nonzero: "nonzero", index_selection.one_hot: "one_hot"}
    for function, name in ((unwrapped(function), name) for function, name in named.items()):
        if isinstance(function, FunctionType) and not any(hasattr(function, mark) for mark in REPORT_THEMSELVES):
            register_intercepted(InterceptedFunction(function, name))
    register_intercepted(_ModuleCall(Module.__call__))
    register_intercepted(_FunctionCall(Function.__dict__["apply"].__func__))
    for declared in TABLE.values():
        declared.display_name = public_name(declared.name)
    rename_ops()


class _FunctionCall(InterceptedFunction):
    """A user's Function, reported by its class's name, after the ops of its forward."""

    def dispatch(self, args: tuple, kwargs: dict):
        """Apply it, and report that."""
        observation = local.observation
        out = self.original(*args, **kwargs)
        if observation is not None and not observation.inside:
            notify_call(observation, args[0].__name__, args[1:], kwargs, out, sys._getframe(1))
        return out


class _ModuleCall(InterceptedFunction):
    """A module's call: entered, run, left."""

    def dispatch(self, args: tuple, kwargs: dict):
        """Run the module, and tell when it begins and ends."""
        observation = local.observation
        if observation is None or observation.silent:
            return self.original(*args, **kwargs)
        module, running = args[0], observation.modules
        path = path_of(module, observation)
        running.append((module, path))
        out = None
        try:
            observation.notify(observation.entered, module, path)
            out = self.original(*args, **kwargs)
            return out
        finally:
            running.pop()
            observation.notify(observation.left, module, path, out)


CALLS_MODULES = _ModuleCall.dispatch.__code__


def path_of(module, observation) -> str:
    """Return a module's dotted name in the outermost one that runs; `….(Linear)` for one that is not registered."""
    running = observation.modules
    for outer, path in reversed(running):
        name = _name_in(outer, module)
        if name is not None:
            return f"{path}.{name}" if path else name
    return f"{running[-1][1]}.({type(module).__name__})".lstrip(".") if running else ""


def _name_in(outer, module) -> str | None:
    """Return the dotted name of a module inside another: its own child's, if it is one, else deeper down."""
    children = outer._modules
    for name, child in children.items():
        if child is module:
            return name
    for name, child in children.items():
        below = _name_in(child, module) if child is not None and child._modules else None
        if below is not None:
            return f"{name}.{below}"
    return None
