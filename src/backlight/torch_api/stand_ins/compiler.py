"""`torch.compiler` and what programs use of `torch._dynamo`: nothing is compiled, so nothing has to be switched off."""

from collections.abc import Callable
from types import SimpleNamespace

from backlight.settings import compile as compile
from backlight.torch_api.stand_ins.jit import _Ignored

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "is_compiling",
    "list_backends",
    "reset",
    "set_stance",
]

config = SimpleNamespace(suppress_errors=False, verbose=False, cache_size_limit=8, recompile_limit=8)  # no effect
set_stance = _Ignored


def is_compiling() -> bool:
    """Tell whether the code is compiled: it never is."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None):
    """Return the function itself; as a decorator with options, a decorator."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Callable) -> Callable:
    """Return the function itself."""
    return fn


assume_constant_result = mark_static_address = allow_in_graph


def reset() -> None:
    """Forget compiled programs: there are none."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: tuple[str, ...] = ()) -> list[str]:
    """Return the names of compilers: there are none."""
    return []


def mark_dynamic(t: object, index: object, *, min: int | None = None, max: int | None = None) -> None:
    """Accept that a dim changes from call to call, which needs nothing here."""
