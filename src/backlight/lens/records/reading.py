"""Reads records back from JSON: strictly, against the schema that their classes are, and only if all fits together."""

from pathlib import Path

from backlight.errors import InputError
from backlight.formats.strict_json import parse_json
from backlight.lens.records.consistency import check_record
from backlight.lens.records.record import FORMAT, Record
from backlight.system.lazy_import import function_later

validated = function_later("backlight.formats.schema", "validated")


def read_record(source: Path | str) -> Record:
    """Read a record from a file, or from the JSON itself.

    Raises:
        InputError: there is no such file, it is no record that this version reads, or a part of it contradicts another;
            the message says where, as a JSON path, and which rule is broken.
    """
    inline = isinstance(source, str) and source.lstrip().startswith("{")
    name = str(source)[:80]
    try:
        plain = parse_json(source if inline else _content_of(Path(source)))
    except ValueError as problem:
        raise InputError(f"record must be JSON, got {name}: {problem}") from problem
    if not isinstance(plain, dict) or not _is_format(plain.pop("format", None)):
        raise InputError(f"record must be of format {FORMAT}, got {name}: write it with Record.save() of this version")
    record = validated(Record, plain, f"the record {name} is damaged")
    for node in record.nodes:
        node.options = {
            option: float(value) if isinstance(value, str) else value for option, value in node.options.items()
        }
    try:
        check_record(record)
    except InputError as problem:
        raise InputError(f"the record {name} is damaged: {problem}") from None
    return record


def _is_format(said: object) -> bool:
    return type(said) is int and said == FORMAT


def _content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:  # a path with a NUL in it
        raise InputError(f"record must be a file that can be read, got {path}: {problem}") from problem
