"""The errors that failed calls end in (NOTE [Failed calls] in dispatch/arguments/parsing.py)."""

import re
from types import MemberDescriptorType

from backlight.dispatch.arguments.parsing import kind_of, shown_name, signatures, wrong_kinds
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, BacklightError, ShapeError
from backlight.sizes import as_storage_error, broadcast

BINDING = re.compile(r"^[\w.<>]+\(\) (got an unexpected keyword|got multiple values|missing \d|takes )")


def better_error(name: str, args: tuple, kwargs: dict, problem: Exception) -> Exception:
    """Return PyTorch's error for a call that failed with an internal error.

    Args:
        name: the public name, `linalg.norm`; of a method `.name`, of a module `nn.Linear.forward`.
    """
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
    return value is problem.obj and not isinstance(value, TensorState)


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
