"""Parts of the output: some rows as one file that is complete or absent."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from backlight.adapters.parquet import read_records, write_parquet
from backlight.errors import InputError
from backlight.explain.batch.checksums import DONE, Damaged, Records, Repair
from backlight.explain.batch.collection import AT_ONCE
from backlight.explain.batch.collection import RECORD as TEXTS_RECORD
from backlight.explain.batch.files import remove, replacing, write_file
from backlight.explain.batch.job import BAD, BAD_ROWS, PARTS
from backlight.explain.batch.rows import BadRow, batched
from backlight.explain.batch.settings import Settings


class Parts:
    """The parts in a folder (see NOTE [A batch's folder] and NOTE [Checksums of a job]).

    Args:
        folder: the batch's.
        settings: say the columns and the format.
        records: what was written down of the parts.

    Attributes:
        done: the numbers of the parts that are as they were written.
        damaged: what is wrong with each of the others, by its number.
    """

    def __init__(self, folder: Path, settings: Settings, records: Records):
        self._folder, self._settings, self._records = folder, settings, records
        self.done: set[int] = set()
        self.damaged: dict[int, Damaged] = {}
        for number in sorted(self._numbers(PARTS, f".{settings.format}") | self._numbers(DONE, ".json")):
            try:
                self._verify(number)
                self.done.add(number)
            except Damaged as problem:
                self.damaged[number] = problem
        for number in set(range(max(self.done, default=0))) - self.done - set(self.damaged):
            self.damaged[number] = Damaged("is missing", self._part(number))

    def _part(self, number: int) -> str:
        return part_file(number, self._settings.format)

    def _bad_part(self, number: int) -> str:
        return bad_file(number)

    def _numbers(self, folder: str, suffix: str) -> set[int]:
        """Return the numbers of the files in a folder that have a part's name."""
        names = (file.name.removesuffix(suffix) for file in (self._folder / folder).glob(f"*{suffix}"))
        return {int(name.removeprefix("part-")) for name in names if NAME.fullmatch(name)}

    def _verify(self, number: int) -> None:
        """Raise Damaged unless a part, its bad rows and its record are as they were written."""
        try:
            record = self._records.verified(part_name(number))
        except Damaged as problem:
            if str(problem) == "is missing" and problem.file.startswith(DONE):
                raise Damaged("was not finished, or its record was lost", self._part(number)) from problem
            raise
        bad = self._bad_part(number)
        if bad not in record["files"] and os.path.lexists(self._folder / bad):
            raise Damaged("is not of this job", bad)

    def write(self, number: int, records: Sequence[dict], bad: Sequence[BadRow]) -> None:
        """Write a part: its bad rows first, then its rows, then its record, which says that the part is done."""
        files = [self._part(number)]
        if bad:
            files.append(self._bad_part(number))
            write_records(self._folder / files[1], [[asdict(row) for row in bad]], BAD_COLUMNS)
        else:
            remove(self._folder / self._bad_part(number))
        write_records(self._folder / files[0], [records], self._settings.columns())
        self._records.write(part_name(number), files, rows=len(records), bad=len(bad))
        self.done.add(number)

    def take(self, number: int, record: Mapping, files: Mapping[str, bytes]) -> None:
        """Write a part that another process computed.

        Args:
            record: of the part.
            files: what it holds, by their names in the folder.
        """
        if self._bad_part(number) not in files:
            remove(self._folder / self._bad_part(number))
        for file in sorted(files):  # "bad" comes before "parts"
            write_file(self._folder / file, files[file])
        self._records.keep(record)
        self.done.add(number)
        self.damaged.pop(number, None)

    def forget(self, number: int) -> bool:
        """Remove the record of a damaged part, so that it is computed again. Return whether it had one."""
        record = self._folder / DONE / f"{part_name(number)}.json"
        if not os.path.lexists(record):
            return False
        remove(record)
        return True

    def part(self, number: int) -> Iterator[dict]:
        """Give the rows of a part."""
        return records_of(self._folder / self._part(number))

    def bad_rows(self) -> Iterator[dict]:
        """Give the bad rows of all parts."""
        for number in sorted(self.done):
            file = self._folder / self._bad_part(number)
            if file.exists():
                yield from records_of(file)

    def join_bad_rows(self) -> None:
        """Write the bad rows of all parts into one file."""
        write_records(self._folder / BAD_ROWS, batched(self.bad_rows(), AT_ONCE), BAD_COLUMNS)

    def tidy(self, count: int) -> Iterator[Repair]:
        """Remove parts beyond the last, and name what else lies among the parts. `count`: how many parts there are."""
        own = {self._part, self._bad_part, lambda number: f"{DONE}/{part_name(number)}.json"}
        expected = {file(number) for number in range(count) for file in own} | {f"{DONE}/{TEXTS_RECORD}.json"}
        for folder in (PARTS, BAD, DONE):
            for file in sorted((self._folder / folder).glob("[!.]*")):
                name = f"{folder}/{file.name}"
                if name in expected:
                    continue
                if NAME.fullmatch(file.stem) and file.suffix in (".jsonl", ".parquet", ".json"):
                    remove(file)
                    yield Repair(name, "belongs to no row of the input", "removed")
                else:
                    yield Repair(name, "is not of this job", "left as it is")
        self.done &= set(range(count))


NAME = re.compile(r"part-\d{5,}")


def part_name(number: int) -> str:
    """Return what the record and the files of a part are called.

    >>> part_name(3)
    'part-00003'
    """
    return f"part-{number:05d}"


def part_file(number: int, format: str) -> str:
    """Return the name of the file with the rows of a part."""
    return f"{PARTS}/{part_name(number)}.{format}"


def bad_file(number: int) -> str:
    """Return the name of the file with the bad rows of a part, if it has any."""
    return f"{BAD}/{part_name(number)}.jsonl"


BAD_COLUMNS = {"line": "int", "kind": "text", "reason": "text", "raw": "text"}


def write_records(file: Path, groups: Iterable[Sequence[Mapping]], kinds: Mapping[str, object]) -> None:
    """Write records as Parquet or JSON lines, as the file's name says, so that the file is complete or absent.

    Args:
        groups: the records, in lists that are written one after another.
        kinds: the columns (see `write_parquet`); in JSON lines, fields without a value are left out.
    """
    with replacing(file) as temporary, open(temporary, "wb") as out:
        _write(out, file.suffix, groups, kinds)


def records_as_bytes(suffix: str, records: Sequence[Mapping], kinds: Mapping[str, object]) -> bytes:
    """Return what `write_records` writes to a file whose name ends in `suffix`."""
    out = BytesIO()
    _write(out, suffix, [records], kinds)
    return out.getvalue()


def _write(out: BinaryIO, suffix: str, groups: Iterable[Sequence[Mapping]], kinds: Mapping[str, object]) -> None:
    if suffix == ".parquet":
        write_parquet(out, groups, kinds)
    else:
        out.writelines(line_of(_short(record, kinds)) for group in groups for record in group)


def records_of(file: Path) -> Iterator[dict]:
    """Give the records of a file that `write_records` made.

    Raises:
        InputError: it cannot be read, though it could when it was verified.
    """
    if file.suffix == ".parquet":
        yield from read_records(file)
        return
    try:
        with open(file, encoding="utf-8", newline="\n") as content:
            yield from map(json.loads, content)
    except (OSError, ValueError) as problem:
        raise InputError(f"{file} was damaged while the batch ran: give the same command again") from problem


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
