"""Functions whose failed calls are explained (NOTE [Failed calls] in dispatch/arguments/parsing.py)."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, TracebackType

import ml_dtypes
import numpy as np

from backlight.dispatch import torch_function
from backlight.dispatch.arguments.kinds import TYPES
from backlight.dispatch.arguments.older_signatures import called_as_before
from backlight.dispatch.dispatcher import dispatch, dispatching, public_function
from backlight.dispatch.interpreters import UNHANDLED
from backlight.engine.tensor_state import TensorState
from backlight.errors import BacklightError
from backlight.kernels.native import core
from backlight.system.lazy_import import function_later

masks = function_later("backlight.dispatch.arguments.refusals", "masks")
refusal = function_later("backlight.dispatch.arguments.refusals", "refusal")
better_error = function_later("backlight.dispatch.arguments.refusals", "better_error")

UNFORESEEN = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, NameError)
UNFORESEEN += (RuntimeError, SystemError, MemoryError)
OUR_FILES = tuple(str(Path(module.__file__).parent) for module in (ml_dtypes, np))
OUR_FILES += (str(Path(__file__).parent.parent.parent), "<backlight ", "<__array_function__")
UNCHECKED = frozenset(["is_tensor", "numel", "is_floating_point", "is_complex", "dim", "ndimension", "size", "item"])
UNCHECKED |= {"tensor", "as_tensor", "sparse_coo_tensor"}  # they take any data, and check it themselves
UNCHECKED |= {"squeeze"}  # its ops check its arguments, and a wrapper costs 7 %

# Methods and properties that are public for all their names, and those that classes override by other means.
DISPATCHED = frozenset({"_base", "_version"})
NOT_DISPATCHED = frozenset(["__init__", "__init_subclass__", "__new__", "__class_getitem__", "__torch_function__"])
NOT_DISPATCHED |= {"__array_function__", "__array_namespace__", "__array_ufunc__", "__iter__", "__getattr__"}

_names: dict[object, str] = {}  # a function that the namespaces show -> its public name
_wrappers: dict[tuple[FunctionType, bool], object] = {}  # a Python function, whether for array_api -> its wrapper


def explained(function: Callable, args: tuple, kwargs: dict, problem: Exception) -> Exception:
    """Return PyTorch's error for a failed call whose arguments are of the wrong kinds, else the original error."""
    name = _names.get(function)
    if name is None or not isinstance(problem, UNFORESEEN) or not _is_ours(problem.__traceback__):
        return problem
    if isinstance(problem, BacklightError) and not str(problem).startswith("argument '"):
        return problem
    return better_error(name, args, kwargs, problem)


def explained_module(module: object, args: tuple, kwargs: dict, problem: Exception) -> Exception:
    """Return PyTorch's error for a failed call of a module, as `explained` does for functions."""
    if isinstance(problem, BacklightError) or not _is_ours(problem.__traceback__):
        return problem
    return better_error(f"nn.{type(module).__name__}.forward", args, kwargs, problem)


def _is_ours(trace: TracebackType | None) -> bool:
    """Tell whether an error was raised by our code or NumPy's, or for the arguments themselves."""
    if trace is None:
        return True
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename.startswith(OUR_FILES)


def compiled_masks(function: Callable) -> list[tuple] | None:
    """Return what the core compares a function's arguments with: NOTE [Kinds of arguments] in refusals.py."""
    name = _names.get(function)
    return None if name is None else masks(name)


def refused(function: Callable, args: tuple, kwargs: dict) -> Exception | None:
    """Return PyTorch's error for arguments of kinds that the function does not take, or None."""
    return refusal(_names[function], args, kwargs)


def checked(function: Callable, name: str):
    """Return what a namespace shows for a function: a wrapper that explains its failed calls.

    Args:
        name: its public name, `linalg.norm`; of a method `.name`.
    """
    if type(function) is not FunctionType:
        if core is not None and not isinstance(function, type) and type(function).__module__ == core.__name__:
            if (
                name[0] != "." and _names.get(function, ".")[0] == "."
            ):  # a method, too: arguments count as the function's
                _names[function] = name
            inner = getattr(function, "__wrapped__", None)  # of a function that takes `out`, which may be a method, too
            if name[0] != "." and _names.get(inner, "")[:1] == ".":
                _names[inner] = name
            if _names.setdefault(function, name) == name and hasattr(type(function), "shown_as"):
                _show_as(function, *_place(name))
        return function
    if function.__name__ in UNCHECKED and not name.startswith("array_api."):  # which has functions of its own
        return function if hasattr(function, "dispatches_itself") else _dispatched(function, *_place(name))
    # The standard's namespace has functions of its own names and rules, so what it shows stands alone.
    key = function, name.startswith("array_api.")
    if key not in _wrappers:
        _wrappers[key] = _make_wrapper(function, *_place(name))
        _names[_wrappers[key]] = name
    elif _names[_wrappers[key]][0] == "." and not (
        name[0] == "." and _names[_wrappers[key]] == f".{function.__name__}"
    ):
        _show_as(_wrappers[key], *_place(name))
        _names[_wrappers[key]] = name
    return _wrappers[key]


def _dispatched(function: FunctionType, module: str, name: str):
    """Return what a namespace shows for a function whose arguments are not checked."""
    if (function, False) not in _wrappers:
        _wrappers[function, False] = public_function(function)
        _show_as(_wrappers[function, False], module, name)
    return _wrappers[function, False]


def wrapper_of(function):
    """Return what the namespaces show for a Python function."""
    return _wrappers.get((function, False), function)


def _place(name: str) -> tuple[str, str]:
    """Return the module that shows a function of this public name, and what it is called there."""
    if name[0] == ".":
        return "backlight", f"Tensor{name}"
    space, _, last = name.rpartition(".")
    return f"backlight.{space}" if space else "backlight", last


def _show_as(wrapper: Callable, module: str, name: str) -> None:
    """Set a wrapper's module and name, so that pickles find it in the namespace that shows it."""
    if core is not None:
        wrapper.shown_as(module, name)
    else:
        wrapper.__module__, wrapper.__qualname__ = module, name


def _kind(value: object):
    """Return what decides whether a function takes a value: its type and its elements', 0 dims or more, its range."""
    if isinstance(value, TensorState):
        return type(value), not value.is_meta and value._data.ndim == 0
    if isinstance(value, int):
        return type(value), -(2**63) <= value < 2**63
    return tuple(map(_kind, value)) if isinstance(value, (tuple, list)) else type(value)


def _make_wrapper(function: FunctionType, module: str, name: str):
    if core is not None:
        return core.checked_function(function, module, name)

    taken: set[tuple] = set()  # accepted kinds of arguments

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if dispatching.active:
            out = dispatch(None, wrapper, args, kwargs)
            if out is not UNHANDLED:
                return out
        kinds = _kind(args), *kwargs, *map(_kind, kwargs.values())
        if kinds not in taken:
            if (problem := refused(wrapper, args, kwargs)) is not None:
                return _result_as_before(wrapper, args, kwargs, problem)
            if not torch_function.overrides_state.on:  # a subclass must not be kept alive
                taken.add(kinds)
        try:
            return function(*args, **kwargs)
        except UNFORESEEN as problem:
            problem.__traceback__ = problem.__traceback__.tb_next
            better = explained(wrapper, args, kwargs, problem)
            if better is problem and not isinstance(problem, TypeError):
                raise
        return _result_as_before(wrapper, args, kwargs, better)

    _show_as(wrapper, module, name)
    return wrapper


def _result_as_before(function: Callable, args: tuple, kwargs: dict, problem: Exception):
    """Return the result of a call that has an older signature; raise the exception of any other."""
    found = called_as_before(function, args, kwargs) if isinstance(problem, TypeError) else NotImplemented
    if found is NotImplemented:
        raise problem
    return found


def unwrapped(function: Callable):
    """Return the Python function behind the wrapper that a namespace shows."""
    return (
        function.__wrapped__ if _wrappers.get((getattr(function, "__wrapped__", None), False)) is function else function
    )


def public_functions(namespace: dict[str, object], own: bool = False) -> list[str]:
    """Return the names of a module's functions that have no underscore in front; with `own` none that are imported."""
    functions = {name: one for name, one in namespace.items() if callable(one) and not isinstance(one, type)}
    here = namespace["__name__"]
    return [name for name, one in functions.items() if name[0] != "_" and not (own and one.__module__ != here)]


def with_checks(namespace: dict, names: Iterable[str], module: str = "backlight") -> dict[str, Callable]:
    """Return those functions of a namespace that are among `names`, with their failed calls explained."""
    start = module.removeprefix("backlight").removeprefix(".")
    found = {name: namespace.get(name) for name in names if name[0] != "_"}
    return {
        name: checked(value, f"{start}.{name}" if start else name) for name, value in found.items() if callable(value)
    }


def check_methods(cls: type) -> None:
    """Wrap a class's methods and properties, inherited ones too: they are dispatched, and failed calls explained."""
    for owner in cls.__mro__[:-1]:
        for name, value in list(vars(owner).items()):
            if name in vars(cls) and owner is not cls:
                continue
            if name[0] != "_":
                found = _checked_property(value) if type(value) is property else value
                found = checked(found, f".{name}") if callable(found) else found
            elif name in DISPATCHED or name.endswith("__"):
                found = _checked_property(value) if type(value) is property else value
                plain = type(found) is FunctionType and name not in NOT_DISPATCHED
                if plain and not hasattr(found, "dispatches_itself"):
                    found = _dispatched(found, "backlight", f"{cls.__name__}.{name}")
            else:
                continue
            if found is not value:
                setattr(cls, name, found)


def _checked_property(value: property) -> property:
    """Return a property whose functions are dispatched."""
    accessors = (value.fget, value.fset, value.fdel)
    return property(*(public_function(one) if type(one) is FunctionType else one for one in accessors), value.__doc__)


if core is not None:
    core.core_explain(explained)
    if hasattr(core, "core_older"):  # a module that was built before lacks it
        core.core_older(called_as_before)
    core.core_kinds(compiled_masks, refused, TYPES)
