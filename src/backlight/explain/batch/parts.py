"""Parts of the output: a chunk's rows as one file that is there whole or not at all."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from backlight.adapters.parquet import read_records, write_parquet
from backlight.explain.batch.job import BAD, BAD_ROWS, PARTS
from backlight.explain.batch.rows import BadRow
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.texts import groups


class Parts:
    """The parts in a folder (see NOTE [A batch's folder]).

    Args:
        folder: the batch's.
        settings: say the columns and the format.
    """

    def __init__(self, folder: Path, settings: Settings):
        self._parts, self._bad, self._together = folder / PARTS, folder / BAD, folder / BAD_ROWS
        self._settings = settings
        self.done = 0
        while self._part(self.done).exists():
            self.done += 1

    def _part(self, number: int) -> Path:
        return self._parts / f"part-{number:05d}.{self._settings.format}"

    def _bad_part(self, number: int) -> Path:
        return self._bad / f"part-{number:05d}.jsonl"

    def write(self, records: Sequence[dict], bad: Sequence[BadRow]) -> None:
        """Write the next part: its bad rows first, then its rows, which say that the chunk is done."""
        self._bad_part(self.done).unlink(missing_ok=True)
        if bad:
            write_records(self._bad_part(self.done), [[asdict(row) for row in bad]], BAD_COLUMNS)
        write_records(self._part(self.done), [records], self._settings.columns())
        self.done += 1

    def part(self, number: int) -> Iterator[dict]:
        """Give the rows of a part."""
        return records_of(self._part(number))

    def bad_rows(self) -> Iterator[dict]:
        """Give the bad rows of all parts."""
        for number in range(self.done):
            if self._bad_part(number).exists():
                yield from records_of(self._bad_part(number))

    def join_bad_rows(self) -> None:
        """Write the bad rows of all parts into one file."""
        write_records(self._together, groups(self.bad_rows()), BAD_COLUMNS)


BAD_COLUMNS = {"line": "int", "kind": "text", "reason": "text", "raw": "text"}


def write_records(file: Path, groups: Iterable[Sequence[Mapping]], kinds: Mapping[str, object]) -> None:
    """Write records as Parquet or JSON lines, as the file's name says, so that the file is there whole or not at all.

    Args:
        groups: the records, in lists that are written one after another.
        kinds: the columns (see `write_parquet`); in JSON lines, fields without a value are left out.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}")
    if file.suffix == ".parquet":
        write_parquet(beside, groups, kinds)
    else:
        with open(beside, "wb") as out:
            out.writelines(line_of(_short(record, kinds)) for group in groups for record in group)
    with open(beside, "rb+") as written:
        os.fsync(written.fileno())
    beside.replace(file)


def records_of(file: Path) -> Iterator[dict]:
    """Give the records of a file that `write_records` made."""
    if file.suffix == ".parquet":
        yield from read_records(file)
        return
    with open(file, encoding="utf-8", newline="\n") as content:
        yield from map(json.loads, content)


def line_of(record: Mapping) -> bytes:
    """Return a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _short(record: Mapping, kinds: Mapping[str, object]) -> dict:
    """Return a record as JSON lines have it: single values with seven digits, and nothing that is None."""
    found = {}
    for name, kind in kinds.items():
        value = record.get(name)
        if value is None:
            continue
        if isinstance(kind, Mapping):
            found[name] = [_short(one, kind) for one in value]
        else:
            found[name] = float(f"{value:.7g}") if kind == "single" else value
    return found
