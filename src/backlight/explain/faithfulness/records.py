"""Results of a study, written to disk one line each as they are measured, so that an interrupted study can resume.

NOTE [The side file]
The first line says what is measured: the model, the data, the plan. Each other line is the result of one unit of work
by its key. A line is written and flushed before the next unit begins. A line that was cut off by the end of the
process, or that is no record any more, does not count: its unit is measured again. A study goes on only with the same
first line.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backlight.errors import InputError
from backlight.formats.strict_json import parse_json


class Records:
    """The results of a study so far.

    Args:
        file: where they are kept.
        settings: what is measured, as plain data.
        resume: whether to go on from what the file holds.

    Raises:
        InputError: the file exists and is not to be gone on with, or holds the results of another study.
    """

    def __init__(self, file: Path, settings: Mapping, *, resume: bool = False):
        self.file = Path(file)
        self._found: dict[str, dict] = {}
        first = json.dumps(settings, ensure_ascii=False, sort_keys=True)
        if self.file.exists() and not resume:
            raise InputError(f"{self.file} holds the results of an earlier run: give --resume to go on, or remove it")
        lines = _complete_lines(self.file)
        if lines:
            if lines[0] != first:
                raise InputError(f"{self.file} holds the results of another study ({_differences(lines[0], first)})")
            self._found = dict(found for found in map(_result_in, lines[1:]) if found is not None)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.file.open("a", encoding="utf-8")
        except OSError as problem:
            raise InputError(f"cannot write {self.file}: {problem.strerror}") from problem
        if not lines:
            self._write(first)

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __getitem__(self, key: str) -> dict:
        return self._found[key]

    def __len__(self) -> int:
        return len(self._found)

    def add(self, key: str, result: dict) -> None:
        """Keep the result of a unit of work."""
        self._write(json.dumps({"key": key, "result": result}, ensure_ascii=False, allow_nan=False))
        self._found[key] = result

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # every line was flushed: only one that could not be is left, and `_write` said so
            self._stream.close()

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except OSError as problem:
            self.close()
            raise InputError(f"cannot write {self.file}: {problem.strerror}") from problem


def _complete_lines(file: Path) -> list[str]:
    if not file.is_file():
        return []
    content = file.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        os.truncate(file, len(complete))
    return complete.decode("utf-8", "replace").split("\n")[:-1]


def _result_in(line: str) -> tuple[str, dict] | None:
    """Return the key and the result of a line; None if it holds none."""
    try:
        record = json.loads(line)
        key, result = record["key"], record["result"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return (key, result) if isinstance(key, str) and isinstance(result, dict) else None


def _differences(line: str, other: str) -> str:
    try:
        there, here = parse_json(line), json.loads(other)
    except ValueError:
        return "its first line is not a study's"
    keys = [key for key in here if not isinstance(there, dict) or there.get(key) != here[key]]
    return f"its {', '.join(keys)} differ" if keys else "of another version"
