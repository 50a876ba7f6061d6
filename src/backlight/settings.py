"""Settings that PyTorch's programs make and that nothing here depends on: they are checked, and remembered.

Every op here gives the same numbers in every run, whatever the number of threads, and products of float32 matrices are
computed in float32: so neither setting has anything to change, except that PyTorch's deterministic algorithms fill new
memory.
"""

from types import ModuleType

from backlight.errors import ArgumentError, GraphError
from backlight.system.user_warnings import warn_outside

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]

PRECISIONS = ("highest", "high", "medium")
DEBUG_MODES = ("default", "warn", "error")

_set = {"precision": "highest", "deterministic": False, "warn only": False}


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """Return the function or module itself: what it computes is the same, and nothing here makes it faster.

    PyTorch's compiled programs have the meaning of the programs as they were written, and so has this one. The options
    choose how it is compiled there; as a decorator with options it returns what is decorated.

    Raises:
        RuntimeError: `mode` and `options` are both given.
        TypeError: what is given cannot be called.
    """
    if mode is not None and options is not None:
        raise GraphError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda function: compile(function, mode=mode, options=options)
    if not callable(model):
        raise ArgumentError(f"torch.compile takes a function or a module, got {type(model).__name__}")
    return model


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether only deterministic algorithms may be used: all of backlight's are.

    Raises:
        TypeError: `mode` is not a bool.
    """
    if not isinstance(mode, bool):
        raise ArgumentError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    _set["deterministic"], _set["warn only"] = mode, warn_only


class Deterministic(ModuleType):
    """PyTorch's module `torch.utils.deterministic`.

    Attributes:
        fill_uninitialized_memory: whether new memory is filled with NaN, the largest integer or True while
            `use_deterministic_algorithms(True)` is in force.
    """

    fill_uninitialized_memory: bool = True


deterministic = Deterministic("torch.utils.deterministic")


def fills_memory() -> bool:
    """Return whether memory that a program has not written to yet is to be filled."""
    return _set["deterministic"] and deterministic.fill_uninitialized_memory


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms(True)` is in force."""
    return _set["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the `warn_only` given to `use_deterministic_algorithms`."""
    return _set["warn only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Remember the same by number or name: 0 "default", 1 "warn", 2 "error".

    Raises:
        TypeError: it is neither a number nor a name.
        RuntimeError: there is no such mode.
    """
    if not isinstance(debug_mode, (int, str)):
        raise ArgumentError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str) and debug_mode not in DEBUG_MODES:
        raise GraphError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
        )
    number = DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        raise GraphError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {number}")
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """Return the number that `set_deterministic_debug_mode` was given, or that goes with the other setting."""
    return 0 if not _set["deterministic"] else 1 if _set["warn only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Remember how exact products of float32 matrices must be at least; here they are always "highest".

    Raises:
        RuntimeError: it is not a string.
    """
    if not isinstance(precision, str):
        raise GraphError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in PRECISIONS:
        warn_outside(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has "
            "no effect."
        )
        return
    _set["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was given."""
    return _set["precision"]
