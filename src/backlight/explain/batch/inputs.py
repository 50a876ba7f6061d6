"""Inputs of pairs: JSON lines, tables (CSV, TSV), Parquet, collections; and how what a person named becomes one.

NOTE [A source]
What a batch reads from has `kind`, `files` (what is fingerprinted), `total(fingerprints)` (how far `line` counts, for
the time left), `prepare(records, notice)` (called once before the first row, with the records of the folder to keep
things in, and with what to call if a file there was damaged), `close()` (called once at the end), `records(start)`
(each record's place and its rows and bad rows, always in the same order, from the record at `start`), `rows(start)`
(the rows alone, from the one at `start`) and `ideal(query_id)` (all labels that a query's documents have, those outside
the input too, best first; None where only the input's own labels are known).
"""

import csv
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from backlight.adapters.parquet import columns_in, count_rows, read_records
from backlight.errors import InputError
from backlight.explain.batch.checksums import Records, Repair
from backlight.explain.batch.collection import Collection
from backlight.explain.batch.files import (
    BLOCK,
    MARK,
    Fingerprint,
    opened,
    placed_lines,
    remove_folder,
    replacing,
    suffix_of,
)
from backlight.explain.batch.rows import (
    START,
    USUAL,
    BadRow,
    Columns,
    Place,
    Row,
    Unusable,
    bad_row,
    record_of,
    rows_from,
    rows_of,
)

DELIMITERS = ("\t", ",", ";", "|")
HEAD = 1 << 16  # bytes of a table that are looked at to tell whether it has quotes
LONGEST_FIELD = 10_000_000  # characters; a field that seems longer is an unclosed quote
QUOTED_FIELD = re.compile(rb'(?:^|\t)"(?:[^"\t\r\n]|"")*"(?=\t|\r?\n|$)', re.MULTILINE)


@dataclass(frozen=True)
class PairFile:
    """A file with a pair, or a query with its documents, in each line (see NOTE [A source])."""

    file: Path
    columns: Columns = USUAL

    kind = "pairs"

    @property
    def files(self) -> list[Path]:
        """What the input consists of."""
        return [self.file]

    def total(self, fingerprints: Sequence[Fingerprint]) -> int:
        """Return how far `line` counts."""
        return sum(one.lines for one in fingerprints)

    def prepare(self, records: Records, notice: Callable[[Repair], None]) -> None:
        """Check that the input can be read at all."""

    def close(self) -> None:
        """Do nothing: a file is open only while its rows are read."""

    def rows(self, start: Place = START) -> Iterator[Row | BadRow]:
        """Give the pairs, and the lines that are none, from the one at `start`."""
        yield from rows_from(self.records(start), start)

    def records(self, start: Place = START) -> Iterator[tuple[Place, Iterable[Row | BadRow]]]:
        """Give each record's place and its rows, from the record at `start`."""
        raise NotImplementedError

    def ideal(self, query_id: str) -> list[float] | None:
        """Return None: only the labels in the input are known."""
        return None


class JsonLines(PairFile):
    """An object a line."""

    kind = "jsonl"

    def records(self, start: Place = START) -> Iterator[tuple[Place, Iterable[Row | BadRow]]]:
        """Give each line's place and its rows, from the line at `start`."""
        for place, line in placed_lines(self.file, start):
            try:
                record = record_of(line)
            except Unusable as problem:
                yield place, [bad_row(place.line, problem, line[:1000].decode("utf-8", "backslashreplace"))]
                continue
            yield place, rows_of(record, place.line, self.columns)


@dataclass(frozen=True)
class Table(PairFile):
    """A header with names, then a pair a line, cut by tabs, commas, semicolons or bars."""

    delimiter: str = ","
    quotes: bool = True

    kind = "table"

    @classmethod
    def of(cls, file: Path, columns: Columns, quotes: bool | None = None) -> "Table":
        """Find out how a table is cut: its header must hold the requested columns.

        Args:
            quotes: whether fields may stand in quotes; by default a table cut by tabs has quotes only if the first
                lines show one, every other has.

        Raises:
            InputError: no delimiter finds the columns in the header.
        """
        with opened(file) as content:
            head = content.read(HEAD).removeprefix(b"\xef\xbb\xbf")
        header = head.split(b"\n", 1)[0].decode("utf-8", "replace")
        cuts = {one: next(csv.reader([header], delimiter=one), []) for one in DELIMITERS}
        wanted = {columns.query, columns.document}
        delimiter = next((one for one, names in cuts.items() if wanted <= set(names)), None)
        if delimiter is None:
            names = max(cuts.values(), key=len)
            raise InputError(
                f"the header of {file} must name the columns {columns.query} and {columns.document}, got "
                f"{', '.join(names) or 'nothing'}: call them so, or say which they are (batch has --query-column and "
                "--document-column)"
            )
        check_named(columns, cuts[delimiter], file)
        if quotes is None:
            quotes = delimiter != "\t" or bool(QUOTED_FIELD.search(head))
        return cls(file, columns, delimiter, quotes)

    def records(self, start: Place = START) -> Iterator[tuple[Place, Iterable[Row | BadRow]]]:
        """Give the place of each row of the table and its pairs, from the row at `start`."""
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        with opened(self.file) as content:
            lines = PlacedLines(content, START)
            reader = self._reader(lines)
            names = next(reader)
            if start != START:
                lines.close()
                lines = PlacedLines(content, start)
                reader = self._reader(lines)
            while True:
                place = lines.place
                try:
                    values = next(reader)
                except StopIteration:
                    return
                except csv.Error as problem:
                    yield place, [bad_row(lines.read, Unusable("not a table row", f"must be a row: {problem}"), "")]
                    continue
                yield place, self._pairs(names, values, lines.read)

    def _reader(self, lines: "PlacedLines") -> Iterator[list[str]]:
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quoting=quoting)

    def _pairs(self, names: list[str], values: list[str], line: int) -> Iterator[Row | BadRow]:
        if len(values) == len(names):
            yield from rows_of(dict(zip(names, values)), line, self.columns)
        elif values:
            reason = f"must have {len(names)} fields as the header has, got {len(values)}"
            yield bad_row(line, Unusable("not a table row", reason), self.delimiter.join(values))


class PlacedLines:
    """The lines of an open table as text, from `start`; csv's reader takes no more of them than a row needs.

    Attributes:
        read: how many lines of the file were read.
    """

    def __init__(self, content: BinaryIO, start: Place):
        content.seek(start.at)
        if not start.at and content.read(len(MARK)) != MARK:
            content.seek(0)
        self._at, self.read = content.tell(), start.line - 1
        self._text = TextIOWrapper(content, "utf-8", errors="surrogateescape", newline="")

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self._at += len(line.encode("utf-8", "surrogateescape"))
            self.read += 1
            yield line

    @property
    def place(self) -> Place:
        """Where the next line begins."""
        return Place(0, self._at, self.read + 1)

    def close(self) -> None:
        """Leave the file open."""
        self._text.detach()


@dataclass(frozen=True)
class ParquetFiles(PairFile):
    """A Parquet file, or a folder of them, read in the order of their names."""

    kind = "parquet"

    @property
    def files(self) -> list[Path]:
        """What the input consists of."""
        return sorted(self.file.glob("*.parquet")) if self.file.is_dir() else [self.file]

    def total(self, fingerprints: Sequence[Fingerprint]) -> int:
        """Return how many rows there are."""
        return sum(count_rows(file) for file in self.files)

    def prepare(self, records: Records, notice: Callable[[Repair], None]) -> None:
        """Check that each file has the requested columns."""
        for file in self.files:
            names = columns_in(file)
            document = self.columns.document if self.columns.document in names else self.columns.documents
            for name in (self.columns.query, document):
                if name not in names:
                    wanted = self.columns.document if name == document else name
                    raise InputError(f"{file} must have the column {wanted}, has {', '.join(names)}")
            check_named(self.columns, names, file)

    def records(self, start: Place = START) -> Iterator[tuple[Place, Iterable[Row | BadRow]]]:
        """Give the place of each row and its pairs, from the row at `start`; a line is a row here."""
        names = [getattr(self.columns, field.name) for field in fields(self.columns)]
        line = start.line
        for number, file in enumerate(self.files[start.file :], start.file):
            first = start.at if number == start.file else 0
            for at, record in enumerate(read_records(file, names, first=first), first):
                yield Place(number, at, line), rows_of(record, line, self.columns)
                line += 1


def check_named(columns: Columns, names: Sequence[str], file: Path) -> None:
    """Raise if a column that was named on purpose is not there."""
    usual: Mapping[str, str] = {field.name: field.default for field in fields(Columns)}
    for field, default in usual.items():
        name = getattr(columns, field)
        if name != default and name not in names:
            raise InputError(f"{file} must have the column {name}, has {', '.join(names)}")


FORMATS = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
}
SPOOLED = "standard_input.jsonl"
INCOMING = ".incoming"  # the folder where it stays until it is clear that it is the job's
Source = PairFile | Collection
Given = str | os.PathLike | Iterable[Mapping]


@dataclass(frozen=True)
class Reading:
    """How an input is read.

    Args:
        columns: what the fields are called.
        format: a key of `FORMATS`; by default as the name's ending says.
        quotes: whether a table's fields may stand in quotes; by default as the table looks.
        corpus, queries: texts by id; then the input is a run or judgements.
        qrels: judgements for a run.
        run: the pairs to score of a BEIR folder, in place of those that were judged.
        split: which judgements of a BEIR folder.
    """

    columns: Columns = USUAL
    format: str | None = None
    quotes: bool | None = None
    corpus: Path | None = None
    queries: Path | None = None
    qrels: Path | None = None
    run: Path | None = None
    split: str | None = None


def open_input(given: Given, folder: Path, reading: Reading) -> Source:
    """Return the source of pairs that a person named (see NOTE [A source] in explain/batch/inputs.py).

    Args:
        given: a file, a folder, "-" for JSON lines from standard input, or the records themselves.
        folder: where standard input and records are kept, so that a job on them can go on after its process died.

    Raises:
        InputError: there is no such input, or it is of no known kind.
    """
    if not isinstance(given, (str, os.PathLike)):
        return JsonLines(spooled(_as_lines(given), folder), reading.columns)
    if str(given) == "-":
        return JsonLines(spooled(sys.stdin.buffer, folder), reading.columns)
    path = Path(given).expanduser()
    if not path.exists():
        raise InputError(f"there is no file or folder {path}")
    if reading.corpus or reading.queries:
        return _named_by_ids(path, reading)
    return _of_folder(path, reading) if path.is_dir() else _of_file(path, reading)


def _named_by_ids(path: Path, reading: Reading) -> Collection:
    if not (reading.corpus and reading.queries):
        raise InputError("--corpus and --queries must be given together: a run names both by their ids")
    qrels = reading.qrels if reading.qrels or _is_run(path) else path
    return Collection(path, reading.corpus, reading.queries, qrels)


def _of_folder(path: Path, reading: Reading) -> Source:
    if any(path.glob("*.parquet")):
        return ParquetFiles(path, reading.columns)
    if (path / "corpus.jsonl").is_file() or (path / "corpus.jsonl.gz").is_file():
        return Collection.of_folder(path, split=reading.split, run=reading.run)
    raise InputError(f"the folder {path} must hold corpus.jsonl, queries.jsonl and qrels (BEIR), or Parquet files")


def _of_file(path: Path, reading: Reading) -> Source:
    format = reading.format or _format_of(path)
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, got {format}")
    if format == "parquet":
        return ParquetFiles(path, reading.columns)
    if format == "jsonl":
        return JsonLines(path, reading.columns)
    return Table.of(path, reading.columns, reading.quotes)


def _format_of(path: Path) -> str:
    suffix = suffix_of(path)
    for format, suffixes in FORMATS.items():
        if suffix in suffixes:
            return format
    raise InputError(
        f"{path.name} must end in {', '.join(one for some in FORMATS.values() for one in some)} (or in one of them and "
        ".gz): say what it is with --input-format; a TREC run needs --corpus and --queries"
    )


def _is_run(path: Path) -> bool:
    with opened(path) as content:
        return len(content.readline(BLOCK).split()) == 6


def _as_lines(records: Iterable[Mapping]) -> Iterable[bytes]:
    return (json.dumps(record, ensure_ascii=True).encode() + b"\n" for record in records)


def spooled(lines: BinaryIO | Iterable[bytes], folder: Path) -> Path:
    """Write what comes from standard input, or from records, to a file, which `keep_spooled` takes into the job.

    Nothing at all stands for the file that is kept there, so that a job can go on without its input being given again.
    """
    kept, incoming = folder / SPOOLED, folder / INCOMING / SPOOLED
    with replacing(incoming) as temporary, open(temporary, "wb") as out:
        if hasattr(lines, "read"):
            shutil.copyfileobj(lines, out)
        else:
            out.writelines(lines)
    return incoming if incoming.stat().st_size or not kept.exists() else kept


def keep_spooled(source: Source, folder: Path) -> Source:
    """Return a source whose file, if it came from standard input, is in its place in the job's folder."""
    if source.files[0] != folder / INCOMING / SPOOLED:
        return source
    remove_folder(folder / SPOOLED)
    (folder / INCOMING / SPOOLED).replace(folder / SPOOLED)
    return replace(source, file=folder / SPOOLED)
