"""Plain data checked against the annotations of a dataclass, in one pass of msgspec, and made into one.

NOTE [A schema]
The dataclass is the schema: its annotations say the types, `Bounds` (formats/strict_json.py) and `Literal` what values
there may be. For each a Struct of msgspec is derived at the first use. msgspec is imported here and nowhere else, and
this file only when something is read: 11 ms and 0.5 MB without dependencies, where pydantic takes 50 ms and 7 MB with
four.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Annotated, TypeVar

import msgspec

from backlight.errors import InputError
from backlight.formats.strict_json import Bounds

Kind = TypeVar("Kind")


def validated(kind: type[Kind], plain: object, source: str, *, complete: bool = True) -> Kind:
    """Return plain data as a dataclass, its fields of the kinds and within the bounds that their annotations state.

    Args:
        kind: a dataclass, which may hold others.
        plain: what was read, as dicts, lists and numbers.
        source: where it was read from, for errors.
        complete: whether each object must name all fields; else those that are absent have their defaults.

    Raises:
        InputError: something in it breaks a rule, or a name in it is no field's; the message says where, as a path of
            JSON, and which rule.
    """
    try:
        msgspec.convert(plain, _struct_of(kind, complete))
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as problem:
        rule, _, where = str(problem).partition(" - at ")
        raise InputError(f"{source}: {where.strip('`') or '$'}: {_lowered(rule)}") from None
    except RecursionError:
        raise InputError(f"{source}: $: it is nested too deeply") from None


def with_checked_fields(kind: type[Kind], values: Mapping[str, object]) -> Kind:
    """Return a dataclass made of settings that a person may have written.

    Args:
        kind: a dataclass, whose annotations are the rules.
        values: by the names of its fields.

    Raises:
        InputError: a value breaks a rule: `hidden_size must be a whole number, 1 or more, got '24'`.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    made = {}
    for name, value in values.items():
        try:
            made[name] = msgspec.convert(value, _translated(hints[name], False))
        except (msgspec.ValidationError, RecursionError):
            raise InputError(f"{name} must be {_words_of(hints[name], value)}, got {_short(value)}") from None
    return kind(**made)


def _words_of(annotation, value: object) -> str:
    """Return what a field may hold, for a message."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        bounds = next((part for part in parts[1:] if isinstance(part, Bounds)), Bounds())
        above = bounds.le is not None and type(value) in (int, float) and value > bounds.le
        most = f", at most {bounds.le:g}" if above else ""
        return (bounds.words or _words_of(parts[0], value)) + most
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_words_of(part, value) for part in parts if part is not types.NoneType)
    if origin is typing.Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin in (tuple, list):
        return f"a list, each {_words_of(parts[0], None)}"
    return NAMES.get(origin or annotation, "of another kind")


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", dict: "an object"}


def _short(value: object) -> str:
    try:
        said = repr(value)
    except (RecursionError, ValueError):  # a number of thousands of digits
        said = type(value).__name__
    return said if len(said) < 80 else said[:77] + "…"


def _lowered(rule: str) -> str:
    return (rule[:1].lower() + rule[1:]).replace("`", "")


@cache
def _struct_of(kind: type, complete: bool) -> type:
    """Return the Struct that a dataclass stands for (see NOTE [A schema])."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = []
    for field in dataclasses.fields(kind):
        annotation = _translated(hints[field.name], complete)
        absent = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        needed = complete or absent
        fields.append((field.name, annotation) if needed else (field.name, annotation, msgspec.UNSET))
    return msgspec.defstruct(kind.__name__, fields, forbid_unknown_fields=True, kw_only=True)


def _translated(annotation, complete: bool):
    """Return an annotation with Structs for dataclasses and msgspec's constraints for `Bounds`."""
    if dataclasses.is_dataclass(annotation):
        return _struct_of(annotation, complete)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        bounds = next((part for part in parts[1:] if isinstance(part, Bounds)), Bounds())
        return Annotated[parts[0], msgspec.Meta(**_given(bounds))]
    if origin in (None, typing.Literal):
        return annotation
    inner = tuple(part if part is Ellipsis else _translated(part, complete) for part in parts)
    if origin in (types.UnionType, typing.Union):
        return typing.Union[inner]
    return origin[inner]


def _given(bounds: Bounds) -> Mapping[str, float]:
    return {name: value for name in ("ge", "gt", "le") if (value := getattr(bounds, name)) is not None}
