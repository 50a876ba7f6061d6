"""PyTorch's `torch.overrides`: modes and classes that handle calls: NOTE [Overriding] in dispatch/torch_function.py."""

import importlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, wraps
from types import BuiltinFunctionType, FunctionType

from backlight import autograd, fft, linalg, special
from backlight.dispatch import torch_function
from backlight.dispatch.dispatcher import install_overrides
from backlight.dispatch.observation import SharedSwitch, observers
from backlight.dispatch.torch_function import (
    ClassToken,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    disabled,
    overrides_state,
)
from backlight.engine.tensor_state import TensorState
from backlight.kernels.state_blocks import Block
from backlight.nn import functional, init
from backlight.nn.parameter import answer_as_parameters
from backlight.tensor.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "answer_while_alive",
    "asked_about",
    "dispatch_while_alive",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

# Functions that no class may override; modes may override the first ones.
_MAKERS = """
arange as_tensor asarray bartlett_window blackman_window empty empty_strided eye from_numpy frombuffer full
hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range
result_type scalar_tensor tensor tril_indices triu_indices zeros vander fftfreq rfftfreq
"""
_IGNORED = """
are_deterministic_algorithms_enabled broadcast_shapes calculate_gain can_cast from_dlpack get_default_device
get_default_dtype get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads get_num_threads
get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_storage is_tensor
is_warn_always_enabled load manual_seed promote_types save seed set_default_device set_default_dtype
set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_num_interop_threads
set_num_threads set_printoptions set_rng_state set_warn_always typename use_deterministic_algorithms vmap
"""
_IGNORED_METHODS = """
__array_function__ __array_namespace__ __array_ufunc__ __class_getitem__ __init__ __init_subclass__ __iter__ __new__
__torch_function__ as_subclass eig lstsq reinforce solve symeig
"""
MAKERS, IGNORED, IGNORED_METHODS = (frozenset(names.split()) for names in (_MAKERS, _IGNORED, _IGNORED_METHODS))
PRIVATE = frozenset({"_base", "_version"})

# The methods that PyTorch has behind Python's operators
_OPERATORS = """
add add radd add sub sub mul mul rmul mul truediv div mod remainder pow pow matmul matmul lt lt le le gt gt ge ge
ne ne neg neg abs abs pos positive iadd add_ isub sub_ imul mul_ itruediv div_ imod remainder_
"""
OPERATORS = {f"__{name}__": method for name, method in zip(_OPERATORS.split()[::2], _OPERATORS.split()[1::2])}
_TWO_SIDED = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
TWO_SIDED = frozenset(f"__{side}{name}__" for name in _TWO_SIDED.split() for side in ("", "r", "i"))
TWO_SIDED |= {f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne", "rdiv")}

Public = FunctionType | BuiltinFunctionType


_override_switch = SharedSwitch()


def dispatch_while_alive(cls: type) -> None:
    """Have public functions try the `__torch_function__` of a class, as long as the class exists."""
    token = ClassToken()
    enable_overrides(token)
    weakref.finalize(cls, disable_overrides, token).atexit = False


answer_while_alive = dispatch_while_alive  # its first name, for programs that were written with it


class asked_about(Block):  # noqa: N801 - used as a function
    """Have public functions try all classes of arguments inside the block, also types that are no tensors."""

    def _block_state(self) -> ClassToken:
        return ClassToken()

    def _block_change(self, token: ClassToken) -> None:
        enable_overrides(token)

    def _block_restore(self, token: ClassToken) -> None:
        disable_overrides(token)


def enable_overrides(token: object) -> None:
    """Have public functions try modes and classes until `disable_overrides` is called with the same token."""
    with observers.lock:
        if all(one is not token for one in overrides_state.held):
            overrides_state.held.append(token)
        _override_switch.apply(_wanted_overrides(), _apply_overrides)


def disable_overrides(token: object) -> None:
    """Give a token back; without any, public functions no longer try modes and classes."""
    with observers.lock:
        overrides_state.held[:] = [one for one in overrides_state.held if one is not token]
        _override_switch.apply(_wanted_overrides(), _apply_overrides)


def _wanted_overrides() -> int:
    """Return 0 if nothing overrides functions, 1 if only classes of arguments do, 2 if modes or autocast do, too."""
    return 2 if any(type(one) is not ClassToken for one in overrides_state.held) else int(len(overrides_state.held) > 0)


def _apply_overrides() -> None:
    """Have public functions try modes and classes while a token is held; may be repeated after an interrupt."""
    if overrides_state.held:
        _note_overridable()
        answer_as_parameters()
    overrides_state.only_classes = _wanted_overrides() == 1
    install_overrides(len(overrides_state.held) > 0)


@cache
def _note_overridable() -> None:
    """Note which public functions modes and classes may override."""
    overrides_state.overridable |= {function: name in MAKERS for _, name, function in (*_functions(), *_methods())}


def _namespaces() -> dict[str, object]:
    return {
        "torch": importlib.import_module("backlight"),  # the top package is in no layer
        "torch.functional": autograd,
        "torch.nn.functional": functional,
        "torch.nn.init": init,
        "torch.linalg": linalg,
        "torch.special": special,
        "torch.fft": fft,
    }


def _functions() -> Iterator[tuple[str, str, Public]]:
    """Yield PyTorch's functions: (namespace, name, function); and note how each is called."""
    for space, module in _namespaces().items():
        names = ("grad", "backward") if module is autograd else module.__all__
        for name in sorted({*names} - {"Reranker"}):  # reading that attribute would import it
            function = getattr(module, name)
            if name[0] != "_" and name not in IGNORED and callable(function) and not isinstance(function, type):
                yield space, name, _noted(function, f"{space}.{name}")


def _noted(function: Public, name: str) -> Public:
    """Note how a function is called, and return it."""
    overrides_state.names.setdefault(function, name)
    return function


def _methods() -> Iterator[tuple[str, str, Public]]:
    """Yield what does the work of a tensor's methods and properties: (namespace, name, function); note the same."""
    found = {name: value for cls in reversed(Tensor.__mro__[:-1]) for name, value in vars(cls).items()}
    for name, value in sorted(found.items(), key=lambda item: (isinstance(item[1], property), item[0][0] == "_")):
        private = name[0] == "_" and not name.endswith("__") and name not in PRIVATE
        if private or name in IGNORED_METHODS or isinstance(value, (staticmethod, classmethod, type)):
            continue
        if isinstance(value, property):
            yield from _accessors(name, value)
        elif callable(value):
            _note_method(name, value)
            yield "torch.Tensor", name, _noted(value, f"torch.Tensor.{name}")


def _accessors(name: str, value: property) -> Iterator[tuple[str, str, Public]]:
    """Do that for what gets and what sets a property; a function that is public under a name of its own keeps it."""
    for function, accessor in ((value.fget, value.__get__), (value.fset, value.__set__)):
        if function is not None and function not in overrides_state.names:
            overrides_state.shown[function] = accessor
            overrides_state.names[accessor] = f"torch.Tensor.{name}.{accessor.__name__}"
            yield "torch.Tensor", name, function


def _note_method(name: str, function: Public) -> None:
    name = "__rdiv__" if name == "__rtruediv__" else name
    if name in OPERATORS and function not in overrides_state.names:
        overrides_state.shown[function] = getattr(Tensor, OPERATORS[name])
    if name in TWO_SIDED:
        overrides_state.operators.add(function)
    if function not in overrides_state.names and function.__name__ != name:
        function.__name__ = name  # what programs log
    overrides_state.names.setdefault(function, f"torch.Tensor.{name}")


# --- questions --------------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args: Iterable) -> bool:
    """Tell whether a mode is on, or one of the values has a class with a handler of its own."""
    return _mode_is_on() or bool(_overloaded(relevant_args))


def _mode_is_on() -> bool:
    return bool(torch_function.local.modes) and torch_function.local.modes_on


def has_torch_function_unary(value: object) -> bool:
    """Tell the same for one value."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values) -> bool:
    """Tell the same for several values."""
    return has_torch_function(values)


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args, **kwargs):
    """Return what a mode, or the class of one of the relevant arguments, returns for a call of `public_api`.

    Raises:
        TypeError: none of them handles it.
    """
    return torch_function.call_torch_function(public_api, _overloaded(relevant_args), args, kwargs)


def _overloaded(relevant_args: Iterable) -> list:
    return torch_function.overloaded_args(tuple(relevant_args)) if torch_function.local.classes_on else []


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Let modes and classes override the decorated function.

    Args:
        dispatcher: takes the function's arguments and returns the relevant ones.
    """

    def decorate(function: Callable) -> Callable:
        @wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: object) -> bool:
    """Tell whether a value is a tensor, or of a type with `__torch_function__`."""
    return isinstance(inp, TensorState) or hasattr(inp, "__torch_function__")


@cache
def get_default_nowrap_functions() -> set[Callable]:
    """Return what the default `__torch_function__` leaves a plain tensor: gradients, and the base of a view."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


@cache
def get_ignored_functions() -> set[Callable]:
    """Return the public functions that no class can override."""
    spaces = [*_namespaces().values()]
    found = {vars(space)[name] for space in spaces for name in MAKERS | IGNORED if callable(vars(space).get(name))}
    return found | {getattr(Tensor, name) for name in IGNORED_METHODS if hasattr(Tensor, name)}


@cache
def get_overridable_functions() -> dict[object, list[Callable]]:
    """Return the functions that classes can override, by the namespace that shows them."""
    found: dict[object, list] = {}
    spaces = {**_namespaces(), "torch.Tensor": Tensor}
    for space, name, function in (*_functions(), *_methods()):
        if name not in MAKERS:
            found.setdefault(spaces[space], []).append(overrides_state.shown.get(function, function))
    return found


def resolve_name(f: Callable) -> str | None:
    """Return PyTorch's name for a function that can be overridden, with its namespace: "torch.add"."""
    get_overridable_functions()
    return overrides_state.names.get(f)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Tell whether a function is a tensor's method or property."""
    return any(func == one for one in get_overridable_functions()[Tensor]) or getattr(func, "__name__", "") == "__get__"


# --- modes ------------------------------------------------------------------------------------------------------------


class TorchFunctionMode(Block):
    """Handles calls of all public functions inside a `with` block: override `__torch_function__`."""

    def __torch_function__(self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None):
        """Handle a call; calls made in here go to the outer modes."""
        raise NotImplementedError

    def _block_state(self):
        return object(), torch_function.local.modes[:]

    def _block_change(self, state):
        enable_overrides(state[0])
        torch_function.local.modes.append(self)
        return self

    def _block_restore(self, state):
        token, torch_function.local.modes[:] = state
        disable_overrides(token)


class BaseTorchFunctionMode(TorchFunctionMode):
    """Handles each call by calling the function."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Call it."""
        return disabled(func, types, args, kwargs)
