"""Signatures of older versions of PyTorch that it still takes: `torch.add(t, 2, other)`; and NumPy's names.

PyTorch's functions take NumPy's names of parameters for their own: `torch.sum(a=t, axis=0, keepdims=True)`. Only a call
that the present signature refuses comes here.
"""

from collections.abc import Callable
from numbers import Number

from backlight.dispatch.arguments.numpy_names import NUMPY_NAMES
from backlight.engine.tensor_state import TensorState
from backlight.system.lazy_import import function_later
from backlight.system.user_warnings import warn_once

signatures = function_later("backlight.dispatch.arguments.parsing", "signatures")

SCALED = frozenset({"add", "sub"})  # (input, alpha, other)
VALUED = frozenset({"addcmul", "addcdiv"})  # (input, value, tensor1, tensor2)
WEIGHTED = frozenset(
    {"addbmm", "addmm", "addmv", "addr", "baddbmm"}
)  # (beta, input, alpha, one, other), alpha optional


def called_as_before(function: Callable, args: tuple, kwargs: dict):
    """Return the result of a call with an older signature or NumPy's names; NotImplemented for any other call."""
    if not NUMPY_NAMES.keys().isdisjoint(kwargs):
        named = _with_present_names(function.__name__, len(args), kwargs)
        return NotImplemented if named is None else function(*args, **named)
    name = function.__name__.removesuffix("_")
    if name not in SCALED | VALUED | WEIGHTED or kwargs.keys() - {"out"}:
        return NotImplemented
    kinds = "".join(_kind(value) for value in args)
    renamed = _renamed(name, kinds, args)
    if renamed is None:
        return NotImplemented
    tensors, options = renamed
    warn_once(
        f"This overload of {function.__name__} is deprecated:\n\t{_shown(function.__name__, kinds, options)}\nConsider "
        f"using the signature instead in which these are given by name: {', '.join(options)}",
        stacklevel=3,
    )
    return function(*tensors, **options, **kwargs)


def _with_present_names(name: str, given: int, kwargs: dict) -> dict | None:
    """Return arguments under PyTorch's names; None if no signature has the name that one of NumPy's stands for."""
    known = {one.name for parameters in signatures(name) for one in (*parameters[given:], *_by_name_only(parameters))}
    named = {key if key in known else NUMPY_NAMES.get(key, key): value for key, value in kwargs.items()}
    return named if len(named) == len(kwargs) and named.keys() != kwargs.keys() and named.keys() <= known else None


def _by_name_only(parameters: tuple) -> list:
    return [one for one in parameters if one.keyword_only]


def _kind(value: object) -> str:
    if isinstance(value, TensorState):
        return "t"
    return "n" if isinstance(value, Number) and not isinstance(value, bool) else "?"


def _renamed(name: str, kinds: str, args: tuple) -> tuple[tuple, dict] | None:
    """Return the tensors of a call, and its numbers by name; None if its arguments fit no older signature."""
    if name in SCALED and kinds == "tnt":
        return (args[0], args[2]), {"alpha": args[1]}
    if name in VALUED and kinds == "tntt":
        return (args[0], *args[2:]), {"value": args[1]}
    if name in WEIGHTED and kinds in ("nttt", "ntntt", "tntt", "tnntt"):  # a method's own tensor comes first
        numbers = [value for value, kind in zip(args, kinds) if kind == "n"]
        tensors = tuple(value for value, kind in zip(args, kinds) if kind == "t")
        return tensors, dict(zip(("beta", "alpha"), numbers))
    return None


def _shown(name: str, kinds: str, options: dict) -> str:
    names = iter(options)
    return f"{name}({', '.join('Tensor' if kind == 't' else f'Number {next(names)}' for kind in kinds)})"
