"""The configuration of `backlight train`: a TOML or JSON file, checked entry by entry before anything runs."""

import dataclasses
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from backlight.errors import InputError
from backlight.formats.strict_json import parse_json
from backlight.training.rules import check_config, require
from backlight.training.settings import TrainingConfig

LARGEST = 1 << 16  # bytes of a file; the parser's time grows with the square of a key's dots


def read_config(file: Path | str, changes: Sequence[str] = ()) -> TrainingConfig:
    """Return what a TOML or JSON file says; what it leaves out has its default.

    Args:
        changes: settings in place of the file's, each as `optimizer.lr=0.1`.

    Raises:
        InputError: the file cannot be read, or says something that cannot be used.
    """
    file = Path(file)
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    if len(content) > LARGEST:
        raise InputError(f"{file} must be settings, of {LARGEST:,} bytes or less, and has {len(content):,}")
    try:
        found = parse_json(content) if file.suffix == ".json" else tomllib.loads(content.decode("utf-8"))
    except RecursionError as problem:
        raise InputError(
            f"{file} must be nested less deeply: no setting has more than one table around it"
        ) from problem
    except ValueError as problem:  # both kinds of parser, and bytes that are no text
        raise InputError(f"{file} is not {'JSON' if file.suffix == '.json' else 'TOML'}: {problem}") from problem
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold an object, got {type(found).__name__}")
    try:
        return config_of(with_changes(found, changes))
    except InputError as problem:
        with_these = "".join(f" --set {change}" for change in changes)
        raise InputError(f"{file}{with_these}: {problem}") from None


def config_of(found: dict) -> TrainingConfig:
    """Return the settings in a dict.

    Raises:
        InputError: one is unknown, or has a value that cannot be used.
    """
    config = _read(TrainingConfig, found, "")
    check_config(config)
    return config


def with_changes(found: dict, changes: Sequence[str]) -> dict:
    """Return settings with some changed, each given as `optimizer.lr=0.1`; what is no TOML value is a text.

    Raises:
        InputError: a change has no `=` or no name, or its place is taken by something that is no table.

    >>> with_changes({"optimizer": {"name": "sgd"}}, ["optimizer.lr=0.1", "out=runs/b"])
    {'optimizer': {'name': 'sgd', 'lr': 0.1}, 'out': 'runs/b'}
    """
    changed = {name: dict(value) if isinstance(value, dict) else value for name, value in found.items()}
    for change in changes:
        path, equals, text = change.partition("=")
        *tables, name = (part.strip() for part in path.split("."))
        if not equals or not name:
            raise InputError(f"--set must be given a setting and its value, like optimizer.lr=0.1, got {change!r}")
        table = changed
        for part in tables:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(f"{part} must be a table to hold {path}, got {table!r}")
        table[name] = _value_of(text.strip())
    return changed


def _value_of(text: str):
    """Return what a text means in TOML, or the text itself."""
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return found["value"] if len(found) == 1 else text


def as_toml(config: TrainingConfig) -> str:
    """Return all settings as a TOML file that says the same."""
    settings = config.as_dict()
    lines = [f"{name} = {_written(value)}" for name, value in settings.items() if not isinstance(value, dict)]
    for name, table in settings.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]", *(f"{entry} = {_written(value)}" for entry, value in table.items())]
    return "\n".join(lines) + "\n"


def _written(value) -> str:
    """Return a value as TOML writes it: as JSON does, as far as settings go."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(kind: type, found, path: str):
    """Return a dataclass of the settings in `found`, which stand under `path`."""
    if not isinstance(found, dict):
        raise InputError(f"{path} must be a table, got {found!r}")
    fields = {one.name: one for one in dataclasses.fields(kind)}
    values = {}
    for name, value in found.items():
        full = f"{path}.{name}".lstrip(".")
        if name not in fields:
            raise InputError(f"there is no setting {full}: there are {', '.join(fields)}")
        values[name] = _converted(fields[name].type, value, full)
    return kind(**values)


def _converted(kind, value, path: str):
    """Return a value as the kind that its setting has."""
    if dataclasses.is_dataclass(kind):
        return _read(kind, value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == tuple[int, ...]:
        is_valid = isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
        require(is_valid, path, "be a list of whole numbers", value)
        return tuple(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    require(fits, path, f"be {NAMES[kind]}", value)
    return value


NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
