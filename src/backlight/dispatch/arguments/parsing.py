"""PyTorch's checks of the kinds of arguments, made after a call has failed.

NOTE [Failed calls]
Functions here check their arguments while they compute, which costs nothing if the arguments are right. A call that
fails with an internal error, not one written for the caller (a list has no attribute `_data`, NumPy cannot convert an
int of 70 bits), is checked against PyTorch's signatures of that name: if they refuse the arguments, PyTorch's error
is raised instead. Public functions and methods explain their failed calls
(dispatch/arguments/checked.py; csrc/core/wrappers.c), so do the core's ops (csrc/core/op.c) and modules
(nn/modules/module.py).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backlight.devices import device
from backlight.dispatch.arguments.kinds import KINDS, is_int, is_number
from backlight.dispatch.arguments.numpy_names import NUMPY_NAMES
from backlight.dtypes import dtype
from backlight.engine.tensor_state import TensorState
from backlight.errors import ArgumentError, NumberOverflow, ValueProblem
from backlight.layouts import layout, memory_format
from backlight.sizes import Size

ALWAYS_TAKEN = {"out", "requires_grad", "generator", "memory_format", "names", "pin_memory"}
SWITCHES = {"requires_grad", "pin_memory"}
NUMBERS_AS_TENSORS = frozenset(
    ["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"]
)
LARGEST = 2**63 - 1
TORCH_TYPES = frozenset([device, dtype, layout, memory_format, Size])  # named with their module, as NumPy's are
COUNTED = re.compile(r"\(\) (takes (from )?\d+|takes no arguments|got an unexpected keyword|missing \d)")
PREFIXED = ("linalg", "fft", "special")
TABLE = Path(__file__).with_name("signatures.txt")  # written by tools/argument_signatures.py, which says how
PYTHON = "python:"
PYTHONS = {"set_anomaly_enabled": "bool enabled,bool check_nan="}  # of functions that PyTorch has as classes


@dataclass(frozen=True)
class Parameter:
    """One parameter of PyTorch's: its kind as in PyTorch's schemas, `int[1]?`."""

    kind: str
    size: int | None  # of a list that one number may stand for
    name: str
    may_be_none: bool
    has_default: bool
    keyword_only: bool


@cache
def signatures(name: str) -> list[tuple[Parameter, ...]]:
    """Return PyTorch's signatures of a public name (of methods `.name`), or none."""
    bare = name.removeprefix("array_api.").removeprefix(".")
    found = (_listed().get(name) or _listed().get(bare, "")).removeprefix(PYTHON)
    rows = [_parameters(text) for text in found.split("|")] if found else []
    return [row for row in rows if name[0] != "." or row[0].kind.startswith(("Tensor", "object"))]


def is_python(name: str) -> bool:
    """Tell whether PyTorch's function of a name is written in Python, which looks at no kinds of arguments."""
    return (_listed().get(name) or _listed().get(name.removeprefix("."), "")).startswith(PYTHON)


@cache
def _listed() -> dict[str, str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return PYTHONS | dict(line.split("=", 1) for line in lines)


def _parameters(text: str) -> tuple[Parameter, ...]:
    found, keyword_only = [], False
    for part in text.split(","):
        if part == "*":
            keyword_only = True
            continue
        kind, name = part.strip().split(" ")
        bare = kind.rstrip("?")
        size = None
        if bare.endswith("]") and bare[-2].isdigit():
            bare, size = bare[: bare.index("[")] + "[]", int(bare[bare.index("[") + 1 : -1])
        named = name.rstrip("=")
        found.append(Parameter(bare, size, named, kind.endswith("?"), name.endswith("="), keyword_only))
    return tuple(found)


ELEMENTS = {"Tensor[]": "Tensors", "int[]": "ints", "float[]": "floats", "bool[]": "bools", "Scalar[]": "Scalars"}


def takes(parameter: Parameter, value: object) -> bool:
    """Tell whether a parameter takes a value."""
    if value is None:
        return parameter.may_be_none or parameter.kind == "object"
    kind = parameter.kind
    if kind.endswith("[]"):
        element = KINDS.get(kind[:-2].rstrip("?"))
        if isinstance(value, (tuple, list)):
            return element is None or all(element.takes(one) or (one is None and "?" in kind) for one in value)
        single = parameter.size is not None and element is not None and element.takes(value)
        return single or (kind.startswith("Tensor") and isinstance(value, TensorState))
    check = KINDS.get(kind)
    return check is None or check.takes(value)


# --- a call -----------------------------------------------------------------------------------------------------------


def wrong_kinds(name: str, args: tuple, kwargs: dict, binding: bool) -> Exception | None:
    """Return PyTorch's error for the kinds of a call's arguments; None if it takes them, or has no such name.

    Args:
        binding: whether Python refused the arguments for their number or names; else our function takes more of them.
    """
    known = signatures(name)
    if not known:
        return None
    shown = shown_name(name)
    count = len(args) + len(kwargs)
    if is_python(name) and (missing := _missing_in_python(shown, known[0], args, kwargs)) is not None:
        return missing
    problems = [_problem(shown, one, args, kwargs, name.startswith(".")) for one in known]
    if None in problems:
        return _too_large(shown, known[problems.index(None)], args, kwargs)
    numbers = shown.removesuffix("_") in NUMBERS_AS_TENSORS
    if numbers:  # PyTorch's take a number as the tensor that it stands for, and have no other form
        forms = [at for at, one in enumerate(known) if not any(map(_is_number_beside, one))] or range(len(known))
        known, problems = [known[at] for at in forms], [problems[at] for at in forms]
    first = 1 if name.startswith(".") else 0
    if (
        numbers
        and (len(known) > 1 or _has(known[0], "alpha"))
        and not any(_required(one) <= count <= len(one) for one in known)
    ):
        return ArgumentError(f"{_no_combination(shown, args[first:], kwargs)}, but expected {_forms(known, first)}")
    if not binding and all(COUNTED.search(str(problem)) for problem in problems):
        return None
    fitting = [problem for one, problem in zip(known, problems) if _required(one) <= count <= len(one)]
    if len(known) == 1 or len(fitting) == 1 or len({_places(one) for one in known}) == 1:
        return fitting[0] if fitting else problems[0]
    return ArgumentError(f"{_no_combination(shown, args[first:], kwargs)}, but expected {_forms(known, first)}")


def _forms(known: Sequence[tuple[Parameter, ...]], first: int) -> str:
    """Return the signatures that a call may have, as PyTorch lists them, without the `first` parameters."""
    if len(known) > 1:
        return "one of:" + "".join(f"\n * ({', '.join(_written(part) for part in one[first:])})" for one in known)
    parts, starred = [], False
    for one in known[0][first:]:
        if one.keyword_only and not starred:
            parts, starred = [*parts, "*"], True
        parts.append(_written(one).replace("Scalar", "Number") + (" = 1" if one.name == "alpha" else ""))
    return f"({', '.join(parts)}{'' if first else ', Tensor out = None'})"


def _no_combination(shown: str, args: tuple, kwargs: dict) -> str:
    """Return what PyTorch says of arguments that no signature takes: their kinds, those by name in their order."""
    named = [f"{key}={kind_of(kwargs[key])}" for key in sorted(kwargs)]
    got = ", ".join([*map(kind_of, args), *named]) + (", " if named and not args else "")
    return f"{shown}() received an invalid combination of arguments - got ({got})"


def _required(parameters: Sequence[Parameter]) -> int:
    """Return how many arguments a signature needs at least."""
    return sum(not one.has_default for one in parameters)


def _is_number_beside(one: Parameter) -> bool:
    return one.kind == "Scalar" and one.name == "other"


def shown_name(name: str) -> str:
    """Return what PyTorch calls a function in its errors: `linalg_norm` for linalg.norm."""
    *spaces, last = name.split(".")
    return f"{spaces[0]}_{last}" if spaces and spaces[0] in PREFIXED else last


def _problem(shown: str, parameters: Sequence[Parameter], args: tuple, kwargs: dict, method: bool) -> Exception | None:
    """Return why one signature does not take a call, or None."""
    named = {NUMPY_NAMES.get(key, key) if not _has(parameters, key) else key: value for key, value in kwargs.items()}
    places = [one for one in parameters if not one.keyword_only]
    first = 1 if method else 0
    at = place_of_spread(places)
    if at is not None and len(args) > at and all(is_int(value) for value in args[at:]):
        args = (*args[:at], tuple(args[at:]))
    if len(args) > len(places):
        return _too_many(shown, parameters, len(args), first)
    for place, one in enumerate(parameters):
        if place < len(args) and not one.keyword_only:
            value, where = args[place], f" (position {place + 1 - first})"
        elif one.name in named:
            value, where = named.pop(one.name), ""
        elif one.has_default or one.may_be_none or one.keyword_only:
            continue
        else:
            return _missing(shown, places, args, named)
        if not takes(one, value) and not _is_number_for(one, shown, value):
            return _wrong_kind(shown, one, value, where, place)
    for key in named.keys() & SWITCHES:
        if not isinstance(named[key], (bool, type(None))):
            return ArgumentError(f"{shown}(): argument '{key}' must be bool, not {kind_of(named[key])}")
    unknown = [key for key in named if key not in ALWAYS_TAKEN]
    if unknown:
        given = next((key for key in kwargs if NUMPY_NAMES.get(key) == unknown[0]), unknown[0])
        return ArgumentError(f"{shown}() got an unexpected keyword argument '{given}'")
    return None


def _too_many(shown: str, parameters: Sequence[Parameter], given: int, first: int) -> ArgumentError:
    """Return PyTorch's error for too many arguments by position; `first` are not counted, as a method's tensor."""
    places = [one for one in parameters if not one.keyword_only]
    if first and len(parameters) == 1:
        return ArgumentError(f"TensorBase.{shown}() takes no arguments ({given - first} given)")
    least, most, given = sum(not one.has_default for one in places) - first, len(places) - first, given - first
    count = f"{most}" if least >= most else f"from {max(least, 0)} to {most}"
    plural = "" if count == "1" else "s"
    return ArgumentError(
        f"{shown}() takes {count} positional argument{plural} but {given} {'was' if given == 1 else 'were'} given"
    )


def _is_number_for(one: Parameter, shown: str, value: object) -> bool:
    """Tell whether a value is a number that a function takes for a tensor."""
    return one.kind == "Tensor" and shown.removesuffix("_") in NUMBERS_AS_TENSORS and is_number(value)


def _places(parameters: Sequence[Parameter]) -> tuple:
    return tuple((one.kind, one.name) for one in parameters if not one.keyword_only)


def place_of_spread(places: Sequence[Parameter]) -> int | None:
    """Return which parameter may be given as single numbers, as in `zeros(2, 3)` and `x.view(2, 3)`; None: none."""
    at = len(places) - 1
    alone = at == 0 or (at == 1 and places[0].kind == "Tensor")
    return at if alone and places[at].kind == "int[]" else None


def _has(parameters: Sequence[Parameter], name: str) -> bool:
    return any(one.name == name for one in parameters)


def _missing(shown: str, places: Sequence[Parameter], args: tuple, named: dict) -> ArgumentError:
    left = [one.name for one in places[len(args) :] if not one.has_default and one.name not in named]
    listed = ", ".join(f'"{name}"' for name in left)
    return ArgumentError(f"{shown}() missing {len(left)} required positional arguments: {listed}")


def _missing_in_python(shown: str, parameters: Sequence[Parameter], args: tuple, kwargs: dict) -> ArgumentError | None:
    """Return Python's error for required arguments that were left out, as of PyTorch's functions written in Python."""
    places = [one for one in parameters[len(args) :] if not one.keyword_only]
    left = [f"'{one.name}'" for one in places if not (one.has_default or one.may_be_none or one.name in kwargs)]
    if not left:
        return None
    listed = left[0] if len(left) == 1 else f"{', '.join(left[:-1])}{',' * (len(left) > 2)} and {left[-1]}"
    plural = "" if len(left) == 1 else "s"
    return ArgumentError(f"{shown}() missing {len(left)} required positional argument{plural}: {listed}")


def _wrong_kind(shown: str, one: Parameter, value: object, where: str, place: int) -> Exception:
    """Return PyTorch's error for a value that a parameter does not take."""
    start = f"{shown}(): argument '{one.name}'{where} must be"
    if not one.kind.endswith("[]"):
        return ArgumentError(f"{start} {KINDS[one.kind].word}, not {kind_of(value)}")
    expected = f"tuple of {ELEMENTS.get(one.kind, 'Tensors')}"
    check = KINDS[one.kind[:-2].rstrip("?")].takes
    if not isinstance(value, (tuple, list)):
        return ArgumentError(f"{start} {expected}, not {kind_of(value)}")
    at, odd = next((at, element) for at, element in enumerate(value) if not check(element))
    if one.kind.startswith("Tensor"):
        return ArgumentError(f"expected Tensor as element {at} in argument {place}, but got {kind_of(odd)}")
    if at == 0:
        return ArgumentError(f"{start} {expected}, but found element of type {kind_of(odd)} at pos 0")
    return ArgumentError(
        f"{shown}(): argument '{one.name}' failed to unpack the object at pos {at + 1} with error "
        f'"type must be {expected},but got {kind_of(odd)}"'
    )


def _too_large(shown: str, parameters: Sequence[Parameter], args: tuple, kwargs: dict) -> Exception | None:
    """Return PyTorch's error where an int has more than 64 bits."""
    kinds = {one.name: one.kind for one in parameters}
    named = dict(zip([one.name for one in parameters], args)) | kwargs
    for name, value in named.items():
        if kinds.get(name) == "object":
            continue
        if _is_huge(value) and kinds.get(name) in ("Scalar", "float"):
            if kinds[name] == "Scalar" and value >= 2**64:
                return NumberOverflow(f"int too big to convert; {shown}() got {_number(value)}")
            if kinds[name] == "Scalar" and value < 0:
                return NumberOverflow(f"can't convert negative int to unsigned; {shown}() got {_number(value)}")
        elif _is_huge(value):
            return ValueProblem(f"Overflow when unpacking long long; {shown}() got {_number(value)}")
        if isinstance(value, (tuple, list)):
            for place, one in enumerate(value):
                if _is_huge(one):
                    return ArgumentError(
                        f"{shown}(): argument failed to unpack the object at pos {place + 1} with error "
                        f'"Overflow when unpacking long long"; got {_number(one)}'
                    )
    return None


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST


def _number(value: int) -> str:
    return f"{value}" if abs(value) < 2**300 else f"an int of {value.bit_length()} bits"


def kind_of(value: object) -> str:
    """Return the name that PyTorch gives the type of a value."""
    if isinstance(value, TensorState):
        return type(value).__name__
    kind = type(value)
    if kind in TORCH_TYPES:
        return f"torch.{kind.__name__}"
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _written(part: Parameter) -> str:
    return f"{part.kind} {part.name}"
