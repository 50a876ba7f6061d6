"""PyTorch's `torch.overrides`: types and modes that answer calls: NOTE [Overriding] in dispatch/torch_function.py."""

import importlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from types import BuiltinFunctionType, FunctionType

from backlight import autograd, fft, linalg, special
from backlight.dispatch import torch_function
from backlight.dispatch.arguments.checked import unwrapped
from backlight.dispatch.dispatcher import (
    InterceptedFunction,
    InterceptedInBlock,
    InterceptedOverride,
    install_overrides,
    remove_overrides,
)
from backlight.dispatch.observation import SharedSwitch, observers
from backlight.dispatch.torch_function import (
    AskNothing,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    disabled,
)
from backlight.engine import run_backward
from backlight.engine.tensor_state import TensorState
from backlight.kernels.native import core
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

# Functions that no class may answer for; modes answer for the first ones.
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
MAKERS = frozenset(_MAKERS.split())
IGNORED = frozenset(_IGNORED.split())
IGNORED_METHODS = frozenset(_IGNORED_METHODS.split())
PRIVATE = frozenset({"_base", "_version"})

# The methods that PyTorch has behind Python's operators
_OPERATORS = """
add add radd add sub sub mul mul rmul mul truediv div mod remainder pow pow matmul matmul lt lt le le gt gt ge ge
ne ne neg neg abs abs pos positive iadd add_ isub sub_ imul mul_ itruediv div_ imod remainder_
"""
OPERATORS = {f"__{name}__": method for name, method in zip(_OPERATORS.split()[::2], _OPERATORS.split()[1::2])}
TWO_SIDED = frozenset(
    f"__{side}{name}__"
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ]
    for side in ("", "r", "i")
) | {f"__{name}__" for name in ["lt", "le", "gt", "ge", "eq", "ne", "rdiv"]}

Public = FunctionType | BuiltinFunctionType


_override_switch = SharedSwitch()
_held: list[object] = []  # a token for each class with `__torch_function__`, and each active mode


_makers: set[Public] = set()


def answer_while_alive(cls: type) -> None:
    """Have public functions try the `__torch_function__` of a class, as long as the class exists."""
    token = object()
    enable_overrides(token)
    weakref.finalize(cls, disable_overrides, token).atexit = False


class asked_about(Block):  # noqa: N801 - used as a function
    """Have public functions try all classes of arguments inside the block, also types that are no tensors."""

    def _block_state(self) -> object:
        return object()

    def _block_change(self, token) -> None:
        enable_overrides(token)

    def _block_restore(self, token) -> None:
        disable_overrides(token)


def enable_overrides(token: object) -> None:
    """Have public functions try overrides until `disable_overrides` is called with the same token."""
    with observers.lock:
        if all(one is not token for one in _held):
            _held.append(token)
        _override_switch.apply(True, _apply_overrides)


def disable_overrides(token: object) -> None:
    """Stop that, if no other token is held."""
    with observers.lock:
        _held[:] = [one for one in _held if one is not token]
        _override_switch.apply(len(_held) > 0, _apply_overrides)


def _apply_overrides() -> None:
    """Install or remove the overrides; may be repeated after an interrupt."""
    if _held:
        install_overrides(_overrides())
        if core is not None:
            core.core_override(_override_for_core)
        answer_as_parameters()
    else:
        remove_overrides()
        if core is not None:
            core.core_override(None)


@cache
def _overrides() -> list[InterceptedFunction]:
    """Return the interceptions of public functions that are no ops, and of the backward pass."""
    public = {function: name in MAKERS for _, name, function in (*_functions(), *_methods())}
    plain = {one: maker for one, maker in public.items() if type(one) is FunctionType and not _is_op(one)}
    _makers.update(one for one, maker in public.items() if maker)
    made = [InterceptedOverride(function, maker) for function, maker in plain.items()]
    return [*made, InterceptedInBlock(run_backward.run, AskNothing)]


def _is_op(function: FunctionType) -> bool:
    return function.__globals__.get("__name__") == "backlight.ops.generated"


def _override_for_core(function, args: tuple, kwargs: dict):
    """Try overrides for a call of a function that takes `out`; None runs the function."""
    found = torch_function.asked(function, args, kwargs, function in _makers)
    return None if found is torch_function.UNHANDLED else found


def _namespaces() -> dict[str, object]:
    return {
        "torch": importlib.import_module("backlight"),  # the top package is on no floor
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
    """Note how a function is called; return the Python function that does its work."""
    torch_function.names.setdefault(function, name)
    behind = unwrapped(function)
    if behind is not function:
        torch_function.shown.setdefault(behind, function)
        torch_function.names.setdefault(behind, name)
    return behind


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
        if function is not None and function not in torch_function.names:
            torch_function.shown[function] = accessor
            torch_function.names[accessor] = f"torch.Tensor.{name}.{accessor.__name__}"
            yield "torch.Tensor", name, function


def _note_method(name: str, function: Public) -> None:
    name = "__rdiv__" if name == "__rtruediv__" else name
    if name in OPERATORS and function not in torch_function.names:
        torch_function.shown[function] = getattr(Tensor, OPERATORS[name])
    if name in TWO_SIDED:
        torch_function.operators.add(function)
    if function not in torch_function.names and function.__name__ != name:
        function.__name__ = name  # what programs log
    torch_function.names.setdefault(function, f"torch.Tensor.{name}")


# --- questions --------------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args: Iterable) -> bool:
    """Tell whether a mode is on, or one of the values has a class that answers calls itself."""
    return _mode_is_on() or (torch_function.local.classes_on and bool(torch_function.overloaded(tuple(relevant_args))))


def _mode_is_on() -> bool:
    return bool(torch_function.local.modes) and torch_function.local.modes_on


def has_torch_function_unary(value) -> bool:
    """Tell the same for one value."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values) -> bool:
    """Tell the same for several values."""
    return has_torch_function(values)


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args, **kwargs):
    """Return what a mode, or a class of one of the relevant arguments, answers a call of `public_api`.

    Raises:
        TypeError: none of them has an answer.
    """
    answers = torch_function.overloaded(tuple(relevant_args)) if torch_function.local.classes_on else []
    return torch_function.answered(public_api, answers, args, kwargs)


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


def is_tensor_like(inp) -> bool:
    """Tell whether a value is a tensor, or of a type with `__torch_function__`."""
    return isinstance(inp, TensorState) or hasattr(inp, "__torch_function__")


@cache
def get_default_nowrap_functions() -> set[Callable]:
    """Return what the default `__torch_function__` leaves a plain tensor: gradients, and the base of a view."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


@cache
def get_ignored_functions() -> set[Callable]:
    """Return the public functions that no class can answer for."""
    spaces = [*_namespaces().values()]
    found = {vars(space)[name] for space in spaces for name in MAKERS | IGNORED if callable(vars(space).get(name))}
    return found | {getattr(Tensor, name) for name in IGNORED_METHODS if hasattr(Tensor, name)}


@cache
def get_overridable_functions() -> dict[object, list[Callable]]:
    """Return the functions that classes can answer for, by the namespace that shows them."""
    found: dict[object, list] = {}
    spaces = {**_namespaces(), "torch.Tensor": Tensor}
    for space, name, function in (*_functions(), *_methods()):
        if name not in MAKERS:
            found.setdefault(spaces[space], []).append(torch_function.shown.get(function, function))
    return found


def resolve_name(f: Callable) -> str | None:
    """Return PyTorch's name for a function that can be overridden, with its namespace: "torch.add"."""
    get_overridable_functions()
    return torch_function.names.get(f)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Tell whether a function is a tensor's method or property."""
    return any(func == one for one in get_overridable_functions()[Tensor]) or getattr(func, "__name__", "") == "__get__"


# --- modes ------------------------------------------------------------------------------------------------------------


class TorchFunctionMode(Block):
    """Answers for all public functions inside a `with` block: override `__torch_function__`."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
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
    """Answers each call by calling the function."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Call it."""
        return disabled(func, types, args, kwargs)
