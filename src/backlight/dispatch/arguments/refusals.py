"""Which kinds of arguments a function takes, checked before it computes.

NOTE [Kinds of arguments]
Public functions and methods check their arguments first, where PyTorch's do so in C++: a str for a bool, a
float for a dim or a number for a tensor is refused, and never used for what it happens to mean here. The compiled core
accepts the plain cases (csrc/core/argument_kinds.c) by sets of kinds, which are written here as bits of a number, and
calls `refusal` for all others: NumPy's numbers, tensors of one element, subclasses, wrong arguments. Functions that
PyTorch has in Python (`python:` in the table of signatures) check nothing, there and here.
"""

from backlight.dispatch.arguments import kinds
from backlight.dispatch.arguments.parsing import (
    NUMBERS_AS_TENSORS,
    Parameter,
    is_python,
    place_of_spread,
    signatures,
    wrong_kinds,
)
from backlight.engine.tensor_state import TensorState

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
    return wrong_kinds(name, args, kwargs, False)


def _decides_itself(value) -> bool:
    """Tell whether an object is none of ours and has a say in what functions do with it."""
    kind = type(value)
    return not issubclass(kind, TensorState) and hasattr(kind, "__torch_function__")
