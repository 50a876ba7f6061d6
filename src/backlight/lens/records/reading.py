"""Reads records back from JSON."""

import dataclasses
import json
import types
import typing
from functools import cache
from pathlib import Path

from backlight.errors import InputError
from backlight.lens.records.record import FORMAT, Record


def read_record(source: Path | str) -> Record:
    """Read a record from a file, or from the JSON itself.

    Raises:
        InputError: there is no such file, or it is no record that this version reads.
    """
    text = source if isinstance(source, str) and source.lstrip().startswith("{") else _text_of(Path(source))
    try:
        plain = json.loads(text)
    except ValueError as problem:
        raise InputError(f"record must be JSON, got {str(source)[:80]}: {problem}") from problem
    if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
        raise InputError(
            f"record must be of format {FORMAT}, got {str(source)[:80]}: write it with Record.save() of this version"
        )
    try:
        return _read(Record, plain)
    except (TypeError, KeyError, ValueError, AttributeError) as problem:
        raise InputError(f"record must have the fields of Record, got {str(source)[:80]}: {problem}") from problem


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"record must be a file that can be read, got {path}: {problem}") from problem


def _read(kind, plain):
    """Return plain JSON as a value of an annotated kind: dataclasses, lists and tuples of them, or None."""
    if plain is None:
        return None
    if dataclasses.is_dataclass(kind):
        kinds = _kinds(kind)
        return kind(**{name: _read(kinds[name], value) for name, value in plain.items()})
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(plain, list):
        return [_read(parts[0], one) for one in plain] if parts else plain
    if origin is tuple:
        return tuple(plain)
    if origin in (types.UnionType, typing.Union):
        inner = [part for part in parts if dataclasses.is_dataclass(part)]
        return _read(inner[0], plain) if inner else plain
    return plain


@cache
def _kinds(kind) -> dict:
    return typing.get_type_hints(kind)
