"""Which kinds of arguments a function takes, checked before it computes, and the errors that failed calls end in.

NOTE [Kinds of arguments]
Public functions and methods check their arguments first, where PyTorch's do so in C++: a str for a bool, a
float for a dim or a number for a tensor is refused, and never used for what it happens to mean here. The compiled core
accepts the plain cases (csrc/core/argument_kinds.c) by sets of kinds, which are written here as bits of a number, and
calls `refusal` for all others: NumPy's numbers, tensors of one element, subclasses, wrong arguments. Functions that
PyTorch has in Python (`python:` in the table of signatures) check nothing, there and here.
"""

import re
from types import MemberDescriptorType

from backlight.dispatch.arguments import kinds
from backlight.dispatch.arguments.call_sites import called_name
from backlight.dispatch.arguments.parsing import (
    NUMBERS_AS_TENSORS,
    Parameter,
    is_python,
    kind_of,
    place_of_spread,
    shown_name,
    signatures,
    wrong_kinds,
)
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, BacklightError, ShapeError
from backlight.sizes import as_storage_error, broadcast

MOST_ARGUMENTS = 16
CHECK_THEMSELVES = frozenset(["randint"])  # with the words of PyTorch's hand-written parser
_EVERYWHERE = (
    ("requires_grad", kinds.BOOL),
    ("pin_memory", kinds.BOOL),
    ("out", kinds.TENSOR | kinds.TENSORS | kinds.NONE),
    ("memory_format", kinds.FORMAT),
)


def masks(name: str) -> list[tuple] | None:
    """Return what the core compares a call of a public name with; None where nothing is checked.

    Returns:
        For each signature of PyTorch's the kinds and the names of its parameters, how many may be given by position,
        and whether the list among them may be given as single numbers.
    """
    if not _checks(name):
        return None
    tensor = kinds.MASKS["Scalar"] | kinds.TENSOR if name.removeprefix(".") in NUMBERS_AS_TENSORS else kinds.TENSOR
    rows = [_row(one, tensor) for one in signatures(name)]
    return [row for row in rows if len(row[0]) <= MOST_ARGUMENTS] or None


def _checks(name: str) -> bool:
    return not name.startswith("array_api.") and not is_python(name) and name not in CHECK_THEMSELVES


def _row(parameters: tuple[Parameter, ...], tensor: int) -> tuple:
    named = {one.name: _mask(one, tensor) for one in parameters}
    for extra, mask in _EVERYWHERE:
        if len(named) < MOST_ARGUMENTS:
            named.setdefault(extra, mask)
    places = [one for one in parameters if not one.keyword_only]
    return tuple(named.values()), tuple(named), len(places), place_of_spread(places) is not None


def _mask(one: Parameter, tensor: int) -> int:
    """Return the kinds that a parameter takes; `tensor` are those that one of kind Tensor takes."""
    mask = tensor if one.kind == "Tensor" else kinds.MASKS.get(one.kind, kinds.ANYTHING)
    if one.size is not None:
        mask |= kinds.MASKS.get(one.kind[:-2], 0)
    return mask | kinds.NONE if one.may_be_none else mask


def refusal(name: str, args: tuple, kwargs: dict) -> Exception | None:
    """Return PyTorch's error for arguments of kinds that it does not take, or None."""
    if not _checks(name) or any(_decides_itself(value) for value in (*args, *kwargs.values())):
        return None
    return wrong_kinds(called_name(name, args), args, kwargs, False)


def _decides_itself(value) -> bool:
    """Tell whether an object is none of ours and has a say in what functions do with it."""
    kind = type(value)
    return not issubclass(kind, TensorState) and hasattr(kind, "__torch_function__")


# --- the errors that failed calls end in (NOTE [Failed calls] in dispatch/arguments/parsing.py) -----------------------

BINDING = re.compile(r"^[\w.<>]+\(\) (got an unexpected keyword|got multiple values|missing \d|takes )")


def better_error(name: str, args: tuple, kwargs: dict, problem: Exception) -> Exception:
    """Return PyTorch's error for a call that failed with an internal error.

    Args:
        name: the public name, `linalg.norm`; of a method `.name`, of a module `nn.Linear.forward`.
    """
    name = called_name(name, args)
    known = bool(signatures(name))
    binding = isinstance(problem, TypeError) and BINDING.search(str(problem)) is not None
    found = wrong_kinds(name, args, kwargs, binding or problem.__traceback__ is None) if known else None
    if found is None and isinstance(problem, AttributeError):
        found = _no_tensor(name, args, kwargs, problem)
    if found is None and not isinstance(problem, BacklightError):
        found = _tensor_as_number(name, args, kwargs) or _of_value(name, args, kwargs, problem)
    return found or problem


def _no_tensor(name: str, args: tuple, kwargs: dict, problem: AttributeError) -> Exception | None:
    """Return the error for an argument that should have been a tensor: it lacks an attribute."""
    for place, value in enumerate(args):
        if _lacked(value, problem):
            shown = shown_name(name.removesuffix(".forward"))
            number = place + (0 if name.startswith(".") else 1)
            return ArgumentError(
                f"{shown}(): argument 'input' (position {number}) must be Tensor, not {kind_of(value)}"
            )
        if isinstance(value, (tuple, list)):
            for at, one in enumerate(value):
                if _lacked(one, problem):
                    return ArgumentError(f"expected Tensor as element {at} in argument {place}, but got {kind_of(one)}")
    for key, value in kwargs.items():
        if _lacked(value, problem):
            return ArgumentError(f"{shown_name(name)}(): argument '{key}' must be Tensor, not {kind_of(value)}")
    return None


def _lacked(value: object, problem: AttributeError) -> bool:
    """Tell whether an argument is what lacked the attribute: no tensor, or the class of tensors."""
    if isinstance(value, type) and isinstance(problem.obj, MemberDescriptorType):
        return True
    if value is not problem.obj or isinstance(value, TensorState):
        return False
    return any(hasattr(kind, problem.name) for kind in (TensorState, *TensorState.__subclasses__()))


def _tensor_as_number(name: str, args: tuple, kwargs: dict) -> Exception | None:
    """Return the error for a tensor where a function here takes a number only; PyTorch takes one of one element."""
    for one in signatures(name):
        given = dict(zip([part.name for part in one], args)) | kwargs
        for part in one:
            if part.kind in ("Scalar", "float", "int") and isinstance(given.get(part.name), TensorState):
                start = f"{shown_name(name)}(): argument '{part.name}' must be {part.kind}, not Tensor"
                return ArgumentError(f"{start}; pass {part.name}.item()")
    return None


def _of_value(name: str, args: tuple, kwargs: dict, problem: Exception) -> Exception | None:
    """Return the error for arguments of the right kinds whose values NumPy does not take."""
    storage = as_storage_error(problem)
    if storage is not problem:
        return storage
    shown, text = shown_name(name), str(problem)
    if isinstance(problem, ValueError) and text.startswith("negative dimensions"):
        return ShapeError(f"{shown}(): Trying to create tensor with negative dimension; sizes are 0 or more")
    if isinstance(problem, OverflowError) or (
        isinstance(problem, ValueError) and text.startswith("cannot convert float")
    ):
        return ShapeError(
            f"value cannot be converted without overflow; {shown}() got a number that is too large: {text}"
        )
    if isinstance(problem, TypeError) and BINDING.search(text):
        return ArgumentError(text)
    if isinstance(problem, ValueError) and text.startswith("operands could not be broadcast"):
        return _no_broadcast(text)
    if isinstance(problem, TypeError) and "complex" in text:
        return ShapeError(f"value cannot be converted without overflow; {shown}() takes no complex numbers")
    return None


def _no_broadcast(text: str) -> Exception | None:
    """Return PyTorch's error for shapes that do not broadcast, which NumPy's error names."""
    shapes = [tuple(map(int, re.findall(r"\d+", one))) for one in re.findall(r"\(([\d,]*)\)", text)]
    try:
        broadcast(*shapes[:2])
    except ShapeError as problem:
        return problem.with_traceback(None)
    return None
