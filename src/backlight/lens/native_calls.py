"""Which Python functions of our engine are reported to watchers besides ops: creation, writes, exits, modules."""

import importlib
import sys
from collections.abc import Callable

from backlight.autograd.function import applied
from backlight.codegen.declaration import TABLE
from backlight.dispatch.arguments.checked import wrapper_of
from backlight.dispatch.dispatcher import report_calls, report_calls_by
from backlight.dispatch.observation import Observation, notify_call
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
    package = importlib.import_module("backlight")  # the top package is on no floor
    modules = (creation, random_factories, factories, ranges)
    named = {getattr(package, name): name for module in modules for name in module.__all__}
    named |= {getattr(Tensor, name): name for name in (*METHODS, *writes)}
    named |= {data.fget: "data", data.fset: "data"}
    named |= {wrapper_of(masking.nonzero): "nonzero", wrapper_of(index_selection.one_hot): "one_hot"}
    for function, name in named.items():
        if not any(hasattr(function, mark) for mark in REPORT_THEMSELVES) and not hasattr(function, "op"):
            report_calls(function, name)
    report_calls_by(Module.__call__, run_module)
    report_calls_by(applied, apply_function)
    for declared in TABLE.values():
        declared.display_name = public_name(declared.name)


def apply_function(observation: Observation, function: Callable, args: tuple, kwargs: dict):
    """Apply a user's Function, and report that by its class's name, after the ops of its forward."""
    out = function.__wrapped__(*args, **kwargs)
    notify_call(observation, args[0].__name__, args[1:], kwargs, out, sys._getframe(1))
    return out


def run_module(observation: Observation, function: Callable, args: tuple, kwargs: dict):
    """Run a module, and tell when it begins and ends."""
    if observation.silent:
        return function.__wrapped__(*args, **kwargs)
    module, running = args[0], observation.modules
    path = path_of(module, observation)
    running.append((module, path))
    out = None
    try:
        observation.notify(observation.entered, module, path)
        out = function.__wrapped__(*args, **kwargs)
        return out
    finally:
        running.pop()
        observation.notify(observation.left, module, path, out)


CALLS_MODULES = run_module.__code__


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
