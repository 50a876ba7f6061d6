"""Units: how an input is cut, once, into pieces that any worker can read by itself.

NOTE [Units]
A unit is the rows of one part: as many as `Settings.rows`, counted as a batch on one machine counts them, so its part
has the same bytes. A unit says where its first row stands (see `Place`), how many rows it has, and the hash of what
they hold. A worker begins to read there: at a byte of a file of lines or of a table, in a row group of Parquet, at a
line of a run. If what it reads has another hash, the input was changed since the plan.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from backlight.errors import InputError
from backlight.explain.batch.checksums import SIZE
from backlight.explain.batch.inputs import Source
from backlight.explain.batch.rows import BadRow, Place, Row

SHOWN = 20  # units that a message names


@dataclass(frozen=True)
class Unit:
    """A piece of an input (see NOTE [Units]).

    Args:
        number: of the unit, and of its part, from 0.
        row: the number of its first row in the input, from 0.
        rows: how many rows it has, bad ones counted.
        last_line: where its last row stands in the input.
        place: where its first row stands.
        blake2b: the hash of its rows.
    """

    number: int
    row: int
    rows: int
    last_line: int
    place: Place
    blake2b: str

    @classmethod
    def of(cls, record: Mapping) -> "Unit":
        """Return the unit that `as_record` made a record of."""
        return cls(**{**record, "place": Place(*record["place"])})

    def as_record(self) -> dict:
        """Return the unit as JSON has it."""
        return {**asdict(self), "place": list(self.place)}

    def read(self, source: Source) -> list[Row | BadRow]:
        """Return the rows of the unit.

        Raises:
            InputError: the input is not as it was planned.
        """
        rows = list(islice(source.rows(self.place), self.rows))
        if len(rows) != self.rows or hash_of_rows(rows) != self.blake2b:
            raise InputError(
                f"lines {self.place.line:,} to {self.last_line:,} of {source.files[self.place.file]} are not as they "
                "were planned: restore the file, or plan a new job in another folder"
            )
        return rows


def hash_of_rows(rows: Iterable[Row | BadRow]) -> str:
    """Return a hash of all that rows hold."""
    found = hashlib.blake2b(digest_size=SIZE)
    for row in rows:
        found.update(json.dumps(list(vars(row).values())).encode())
    return found.hexdigest()


def cut(source: Source, size: int) -> Iterator[tuple[Unit, list[Row | BadRow]]]:
    """Give the units of an input, each with its rows.

    Args:
        size: rows of a unit.
    """
    number, first, rows = 0, None, []
    for place, found in source.records():
        for skip, row in enumerate(found):
            if first is None:
                first = place._replace(skip=skip)
            rows.append(row)
            if len(rows) == size:
                yield _unit(number, size, first, rows), rows
                number, first, rows = number + 1, None, []
    if first is not None:
        yield _unit(number, size, first, rows), rows


def _unit(number: int, size: int, first: Place, rows: Sequence[Row | BadRow]) -> Unit:
    return Unit(number, number * size, len(rows), rows[-1].line, first, hash_of_rows(rows))


def units_named(text: str | None, count: int) -> range | list[int]:
    """Return the numbers of units that a person named.

    Args:
        text: "3/400" for the third of 400 shares, or numbers such as "7,12-15"; None for all.
        count: how many units there are.

    >>> units_named("2/3", 10), units_named("7,0-2", 10)
    (range(3, 6), [7, 0, 1, 2])

    Raises:
        InputError: the text is neither, or names units that are not there.
    """
    if text is None:
        return range(count)
    share = re.fullmatch(r"(\d+)/(\d+)", text)
    if share:
        part, parts = int(share[1]), int(share[2])
        if not 1 <= part <= parts:
            raise InputError(f"--units must be a share from 1/{parts} to {parts}/{parts}, got {text}")
        return range(count * (part - 1) // parts, count * part // parts)
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
        numbers = [number for first, *last in ends for number in range(first, (last[0] if last else first) + 1)]
    except ValueError as problem:
        raise InputError(f"--units must be like 3/400 (a share) or 7,12-15 (numbers), got {text}") from problem
    if outside := [number for number in numbers if not 0 <= number < count]:
        raise InputError(f"--units must be from 0 to {count - 1}, got {outside[0]}")
    return numbers


def in_words(numbers: Iterable[int]) -> str:
    """Return numbers of units as `units_named` reads them, in order.

    >>> in_words([12, 7, 13, 14])
    '7,12-14'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    said = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ",".join(said)
