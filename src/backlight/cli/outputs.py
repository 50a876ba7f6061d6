"""What commands write: files, checked before hours of work and not after, and data on standard output."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path

from backlight.cli.main import version
from backlight.errors import InputError
from backlight.report.text import harmless_json


def check_output(option: str, path: str | None) -> None:
    """Raise if a file that an option names cannot be written."""
    if path is None:
        return
    if Path(path).is_dir():
        raise InputError(f"{option} must name a file, got the folder {path}: add a file's name")
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"{option} must name a file in a folder that exists, got {path}")
    if not os.access(path if Path(path).exists() else Path(path).resolve().parent, os.W_OK):
        raise InputError(f"{option} must name a file that can be written, got {path}: it is read-only")


def write_output(path: str, text: str, option: str) -> None:
    """Write a file that an option names."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"can't write {path!r}: {problem.strerror}; give {option} another file") from problem


def write_file(file: Path, content: bytes) -> str:
    """Write a file, and return what it is called, with its folder if that had to be made."""
    new = not file.parent.exists()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as problem:
        raise InputError(f"cannot write {file}: {problem.strerror}") from problem
    return f"{file} (the folder {file.parent} is new)" if new else str(file)


def as_json(found: object) -> str:
    """Return a result (a mapping or a record) as one JSON document, with backlight's version first."""
    fields = found if isinstance(found, Mapping) else dataclasses.asdict(found)
    return json_of({"backlight": version(), **fields})


def json_of(found: Mapping) -> str:
    """Return data as JSON for people and programs: other scripts as they are, what commands a terminal as escapes."""
    return harmless_json(json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False))
