"""What a batch reads: pairs of texts, and lines that cannot be one, each with the reason.

NOTE [Bad rows]
A line that cannot be used becomes a `BadRow` in its place. It is counted, written down with its reason, and the others
go on. Rows and bad rows together keep the order of the input, so a part of both is the same each time it is read.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from backlight.models.texts import NUL, no_text_because

SHOWN = 200  # characters of a bad row that are written down
CANDIDATES = "candidates"  # another name of a record's list of documents


@dataclass(frozen=True)
class Row:
    """A pair to score."""

    line: int  # where it stands in the input, counted from 1
    id: str
    query: str
    document: str
    label: float | None = None  # how well they belong together; above 0: they do
    query_id: str | None = None
    document_id: str | None = None


class Place(NamedTuple):
    """Where a row stands in an input, so that reading can begin there.

    Args:
        file: which of the input's files, from 0.
        at: bytes of the unpacked file, or rows of a Parquet file, before the row's record.
        line: the number of the record's first line, from 1.
        skip: how many rows of the same record come before.
    """

    file: int = 0
    at: int = 0
    line: int = 1
    skip: int = 0


START = Place()


@dataclass(frozen=True)
class BadRow:
    """A line, or one of its documents, that cannot be used."""

    line: int
    kind: str  # in two or three words: bad rows are counted by it
    reason: str
    raw: str  # how the line begins


@dataclass(frozen=True)
class Columns:
    """What the fields of a pair are called in the input."""

    query: str = "query"
    document: str = "document"
    documents: str = "documents"  # a list of texts, or of objects with the fields above
    id: str = "id"
    label: str = "label"
    labels: str = "labels"  # beside a list of documents: a label for each
    query_id: str = "query_id"
    document_id: str = "document_id"


USUAL = Columns()


class Unusable(Exception):
    """Why a value cannot be used; becomes a `BadRow` where the line is known."""

    def __init__(self, kind: str, reason: str):
        super().__init__(reason)
        self.kind = kind


def shown(raw: str | Mapping) -> str:
    """Return how a line begins."""
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    return writable(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


def writable(text: str) -> str:
    """Return a text with what is no character (bytes that are not UTF-8, halves of characters) spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def bad_row(line: int, problem: Unusable, raw: str | Mapping) -> BadRow:
    """Return a line that cannot be used."""
    return BadRow(line, problem.kind, writable(str(problem)), shown(raw))


def record_of(line: bytes) -> object:
    """Return what a line of JSON says. Raises Unusable: it is not UTF-8, or not JSON."""
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as problem:
        raise Unusable("not UTF-8", f"must be UTF-8, and byte {problem.start} is not") from problem
    except json.JSONDecodeError as problem:
        raise Unusable("not JSON", f"must be JSON: {problem.msg} at character {problem.pos}") from problem
    except (RecursionError, ValueError) as problem:  # too deep, or a number of too many digits
        raise Unusable("not JSON", f"must be JSON that can be read: {problem}") from problem


def rows_of(record: object, line: int, columns: Columns) -> Iterator[Row | BadRow]:
    """Give the pairs of one record: one for its document, or one for each of its documents.

    Args:
        record: the fields of a line by name.
        line: its number, from 1.
    """
    try:
        found = list(_rows_of(record, line, columns))
    except RecursionError:  # in showing what it holds
        found = [bad_row(line, Unusable("not JSON", "must be nested less deeply"), "")]
    yield from found


def _rows_of(record: object, line: int, columns: Columns) -> Iterator[Row | BadRow]:
    try:
        if not isinstance(record, Mapping):
            raise Unusable("wrong type", f"a line must be an object with fields, got {kind_of(record)}")
        several = next((name for name in (columns.documents, CANDIDATES) if name in record), None)
        if columns.document in record or several is None:
            yield _row(record, line, columns)
            return
        query, documents = text_in(record, columns.query), record[several]
        if not isinstance(documents, list):
            raise Unusable("wrong type", f"{several} must be a list, got {kind_of(documents)}")
        if not documents:
            raise Unusable("empty text", f"{several} must not be empty")
        labels = _labels_in(record, columns, len(documents))
        shared = {columns.query: query, columns.query_id: id_in(record, columns.query_id)}
        own = id_in(record, columns.id) or str(line)
    except Unusable as problem:
        yield bad_row(line, problem, record if isinstance(record, Mapping) else repr(record))
        return
    for number, document in enumerate(documents):
        found = dict(document) if isinstance(document, Mapping) else {columns.document: document}
        found.setdefault(columns.document, found.get("text"))
        found.setdefault(columns.document_id, found.pop(columns.id, None))
        if labels is not None and found.get(columns.label) is None:
            found[columns.label] = labels[number]
        try:
            yield _row({**found, **shared, columns.id: f"{own}.{number}"}, line, columns)
        except Unusable as problem:
            yield bad_row(line, Unusable(problem.kind, f"document {number} of the list: {problem}"), found)


def _labels_in(record: Mapping, columns: Columns, count: int) -> list | None:
    """Return a label for each document of a list: of the list `labels`, or the one `label` of all; None: there is none.

    Raises:
        Unusable: `labels` is no list, or has another number of labels than there are documents.
    """
    labels = record.get(columns.labels)
    if labels is None:
        one = record.get(columns.label)
        return None if one is None else [one] * count
    if not isinstance(labels, list):
        raise Unusable("wrong type", f"{columns.labels} must be a list, got {kind_of(labels)}")
    if len(labels) != count:
        raise Unusable(
            "wrong length", f"{columns.labels} must have a label for each of {count} documents, got {len(labels)}"
        )
    return labels


def _row(record: Mapping, line: int, columns: Columns) -> Row:
    return Row(
        line=line,
        id=id_in(record, columns.id) or str(line),
        query=text_in(record, columns.query),
        document=text_in(record, columns.document),
        label=label_in(record, columns.label),
        query_id=id_in(record, columns.query_id),
        document_id=id_in(record, columns.document_id),
    )


def text_in(record: Mapping, name: str) -> str:
    """Return a text of a record. Raises Unusable: it is missing, empty, no text, or has bytes that are none."""
    value = record.get(name)
    if value is None:
        there = ", ".join(str(other) for other, value in record.items() if value is not None)
        raise Unusable("missing field", f"must have the field {name}, has {shown(there) or 'nothing'}")
    if not isinstance(value, str):
        raise Unusable("wrong type", f"{name} must be text, got {kind_of(value)}")
    if not value.strip():
        raise Unusable("empty text", f"{name} must not be empty")
    problem = no_text_because(value)
    if problem:
        raise Unusable("binary" if NUL in value else "not UTF-8", f"{name} must be text, and {problem}")
    return value


def id_in(record: Mapping, name: str) -> str | None:
    """Return an id as text; None where there is none."""
    value = record.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Unusable("wrong type", f"{name} must be text or a whole number, got {kind_of(value)}")
    return writable(str(value))


def label_in(record: Mapping, name: str) -> float | None:
    """Return a label as a number; None where there is none."""
    value = record.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    try:
        number = math.nan if isinstance(value, (list, dict)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise Unusable("wrong type", f"{name} must be a number, got {shown(str(value))}")
    return number


def kind_of(value: object) -> str:
    """Return what a value is, in the words of JSON."""
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def rows_from(records: Iterable[tuple[Place, Iterable[Row | BadRow]]], start: Place) -> Iterator[Row | BadRow]:
    """Give the rows of records, which begin with the record of `start`."""
    skip = start.skip
    for _, rows in records:
        yield from islice(rows, skip, None)
        skip = 0


def batched(items: Iterable, size: int) -> Iterator[list]:
    """Yield the items in lists of `size`."""
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk
