"""`torch.jit` for programs that run eagerly: its decorators return what they are given, and nothing is compiled.

A scripted or traced function computes what the function computes, so the function stands for it. What needs
TorchScript's compiler (`save`, `load`) is refused.
"""

import builtins
import typing
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Final as Final
from typing import NamedTuple

from backlight.errors import UnsupportedError
from backlight.kernels.state_blocks import Block

__all__ = [
    "Attribute",
    "Error",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class ScriptModule:
    """The type of PyTorch's compiled modules; nothing here is an instance."""


class ScriptFunction:
    """The type of PyTorch's compiled functions; nothing here is an instance."""


class RecursiveScriptModule(ScriptModule):
    """The type of PyTorch's modules that `script` compiled; nothing here is an instance."""


class Error(RuntimeError):
    """An error in compiled code; never raised here."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript is to give it."""

    value: object
    type: object


def script(
    obj: object = None,
    optimize: bool | None = None,
    _frames_up: int = 0,
    _rcb: Callable | None = None,
    example_inputs: object = None,
):
    """Return the function, module or class itself: it is not compiled."""
    return obj


def script_if_tracing(fn: Callable) -> Callable:
    """Return the function itself."""
    return fn


def ignore(drop: bool | Callable = False):
    """Return the function itself; as a decorator with options, a decorator."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Callable) -> Callable:
    """Return the function itself."""
    return fn


def export(fn: Callable) -> Callable:
    """Return the method itself."""
    return fn


def interface(obj: type) -> type:
    """Return the class itself."""
    return obj


def is_scripting() -> bool:
    """Tell whether the code is compiled: it never is."""
    return False


def _get_tracing_state() -> None:
    """Return the state of a trace, which is PyTorch's: there is none."""


def is_tracing() -> bool:
    """Tell whether the code is traced: it never is."""
    return False


def trace(
    func: Callable,
    example_inputs: object = None,
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: object = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    example_kwarg_inputs: dict | None = None,
):
    """Run the function or module once on its example, and return it.

    Raises:
        RuntimeError: there is no example.
    """
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    else:
        func(*(example_inputs if builtins.isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


def trace_module(
    mod: object, inputs: dict, optimize: bool | None = None, check_trace: bool = True, strict: bool = True
):
    """Run methods of a module once, each on its example, and return the module."""
    for name, example in inputs.items():
        getattr(mod, name)(*(example if builtins.isinstance(example, tuple) else (example,)))
    return mod


def freeze(mod: object, preserved_attrs: Iterable[str] | None = None, optimize_numerics: bool = True):
    """Return the module itself."""
    return mod


def optimize_for_inference(mod: object, other_methods: Iterable[str] | None = None):
    """Return the module itself."""
    return mod


def annotate(the_type: object, the_value: object):
    """Return the value."""
    return the_value


class Future:
    """The result of `fork`, which has run already."""

    def __init__(self, value: object):
        self._value = value

    def wait(self):
        """Return the result."""
        return self._value

    def done(self) -> bool:
        """Tell whether the result is there: it always is."""
        return True

    value = wait


def fork(func: Callable, *args, **kwargs) -> Future:
    """Call a function, and return a future with its result."""
    return Future(func(*args, **kwargs))


def wait(future: Future):
    """Return the result of a future."""
    return future.wait()


class _Ignored(Block):
    """A block in which a setting of the compiler has no effect."""

    __slots__ = ()

    def __init__(self, setting: bool | str = True):
        pass

    def _block_state(self) -> None:
        return None

    def _block_change(self, state: None):
        return self

    def _block_restore(self, state: None) -> None:
        pass


optimized_execution = fuser = strict_fusion = _Ignored


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the setting, which has no effect."""
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Accept the setting, which has no effect."""


def onednn_fusion_enabled() -> bool:
    """Tell whether operations are fused: they are not."""
    return False


def save(m: object, f: object) -> None:
    """Raise: there is no compiled module to save.

    Raises:
        NotImplementedError: always.
    """
    raise UnsupportedError("torch.jit.save writes TorchScript, which backlight lacks: use torch.save(module)")


def load(f: object, map_location: object = None) -> None:
    """Raise: files of TorchScript hold compiled code.

    Raises:
        NotImplementedError: always.
    """
    raise UnsupportedError("torch.jit.load reads TorchScript, which backlight lacks: save model.state_dict() instead")


def _fits(value: object, kind: object) -> bool:
    """Tell whether a value is of a type, parameters of generic types included."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return kind is typing.Any or builtins.isinstance(value, type(None) if kind is None else kind)
    if origin in (typing.Union, UnionType):
        return any(_fits(value, each) for each in parts)
    if not builtins.isinstance(value, origin):
        return False
    if origin is dict:
        return all(_fits(key, parts[0]) and _fits(entry, parts[1]) for key, entry in value.items())
    if origin is tuple and not (len(parts) == 2 and parts[1] is ...):
        return len(value) == len(parts) and all(map(_fits, value, parts))
    return all(_fits(each, parts[0]) for each in value)


def isinstance(obj: object, target_type: object) -> bool:
    """Tell whether a value is of a type such as `List[int]`, its elements included."""
    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_fits(obj, kind) for kind in kinds)
