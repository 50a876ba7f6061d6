"""The data that a reranker is trained on: queries with documents that answer them and documents that do not.

NOTE [Rows]
JSON lines, or CSV with a header (documents with labels only). A line is one of

    {"query": …, "positive": …, "negatives": [ … ]}      a right document and wrong ones; either may be missing
    {"query": …, "document": …, "label": 0 | 1 | …}      a document, and how right it is

with, where they are known, "domain" (a name), "weight" (of the query in the loss) and "teacher" (another model's score
of the positive, then one of each negative; null where there is none). Lines with the same query and domain are one
query. Labels above 1 are grades: each is divided by the highest of the file. A query without a right document is one
that nothing answers. A document that is right in one line and wrong in another, for the same query, counts as right.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.training.run_folder import object_of

DEFAULT_DOMAIN = "unnamed"
TAKEN = ("all", "ndcg")  # what figures of all domains are called
LINES = (".jsonl", ".jsonlines", ".ndjson")


@dataclass(frozen=True)
class Judged:
    """A query with the documents of which the data says whether they answer it.

    Args:
        text: the query.
        documents: by their numbers in `TrainingData.documents`.
        labels: from 0 (wrong) to 1, one for each document.
        teacher: another model's score of each document, NaN where it is not known.
        domain: what kind of text it is.
        weight: in the loss.
        part: the number of the file that it is from.
    """

    text: str
    documents: tuple[int, ...]
    labels: tuple[float, ...]
    teacher: tuple[float, ...]
    domain: str = DEFAULT_DOMAIN
    weight: float = 1.0
    part: int = 0

    @property
    def answered(self) -> bool:
        """Whether a document is known that answers it."""
        return any(label > 0 for label in self.labels)


@dataclass(frozen=True)
class TrainingData:
    """All queries and documents of one or several files.

    Args:
        queries: in the order of the files.
        documents: each text once.
        rows: how many lines there were.
        contradictions: documents that some line calls right for a query, and another wrong.
        sha256: of each file.
    """

    queries: tuple[Judged, ...]
    documents: tuple[str, ...]
    rows: int
    contradictions: int
    sha256: tuple[str, ...]

    @property
    def domains(self) -> list[str]:
        """The names of the domains, sorted."""
        return sorted({query.domain for query in self.queries})


def read_training_data(files: Sequence[Path]) -> TrainingData:
    """Return the queries of files (see NOTE [Rows]).

    Raises:
        InputError: a file cannot be read, or a line says something else; the message names the line.
    """
    pool, merged, rows, hashes = {}, {}, 0, []
    for part, file in enumerate(files):
        content = _read(file)
        hashes.append(hashlib.sha256(content).hexdigest())
        for row in _rows_of(file, content):
            rows += 1
            query = _Merged.of(row, part)
            merged.setdefault((part, query.domain, query.text), query).add(row, pool)
    if not merged:
        raise InputError(f"{files[0]} must hold a row at least, and holds none")
    highest = max(1.0, max(query.highest for query in merged.values()))
    queries = tuple(query.judged(highest) for query in merged.values())
    contradictions = sum(query.contradictions for query in merged.values())
    return TrainingData(queries, tuple(pool), rows, contradictions, tuple(hashes))


@dataclass(frozen=True)
class Row:
    """A line: documents with their labels and teacher's scores, checked."""

    where: str
    query: str
    documents: tuple[tuple[str, float, float], ...]
    domain: str
    weight: float
    pair: bool  # whether it is one document with its label


@dataclass
class _Merged:
    """The rows of one query."""

    text: str
    domain: str
    part: int
    documents: dict[int, tuple[float, float, str]] = field(default_factory=dict)  # label, teacher's score, where
    weights: list[float] = field(default_factory=list)
    contradictions: int = 0

    @classmethod
    def of(cls, row: Row, part: int) -> "_Merged":
        return cls(row.query, row.domain, part)

    @property
    def highest(self) -> float:
        return max((label for label, _, _ in self.documents.values()), default=0.0)

    def add(self, row: Row, pool: dict[str, int]) -> None:
        self.weights.append(row.weight)
        for text, label, score in row.documents:
            number = pool.setdefault(text, len(pool))
            known, old, where = self.documents.get(number, (label, score, row.where))
            if known != label and row.pair:
                raise InputError(
                    f"{row.where}: label must be {known:g} as in {where}, where query and document are the same, "
                    f"got {label:g}"
                )
            self.contradictions += (known > 0) != (label > 0)
            self.documents[number] = max(known, label), score if np.isnan(old) else old, where

    def judged(self, highest: float) -> Judged:
        labels, scores, _ = zip(*self.documents.values())
        return Judged(
            text=self.text,
            documents=tuple(self.documents),
            labels=tuple(label / highest for label in labels),
            teacher=scores,
            domain=self.domain,
            weight=float(np.mean(self.weights)),
            part=self.part,
        )


def _read(file: Path) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem


def _rows_of(file: Path, content: bytes) -> Iterator[Row]:
    suffix = Path(file).suffix.lower()
    if suffix in LINES:
        for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            if line.strip():
                where = f"{file}, line {number}"
                yield _row(object_of(line, where), where)
    elif suffix == ".csv":
        yield from _rows_of_table(file, content)
    else:
        raise InputError(f"{file} must end in {', '.join(LINES)} or .csv: save the rows as JSON lines or CSV")


def _rows_of_table(file: Path, content: bytes) -> Iterator[Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise InputError(f"{file}, line {line} must be UTF-8, and is not: save the file as UTF-8") from problem
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    missing = [name for name in ("query", "document", "label") if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{file}, line 1 must name the columns query, document and label: {missing[0]} is missing")
    try:
        for row in reader:
            yield _row({name: value for name, value in row.items() if value != ""}, f"{file}, line {reader.line_num}")
    except csv.Error as problem:
        raise InputError(f"{file}, line {reader.reader.line_num} is not CSV: {problem}") from problem


def _row(row: Mapping, where: str) -> Row:
    """Return a line as it was checked."""
    query = _text(row.get("query"), "query", where)
    domain = _text(row.get("domain") or DEFAULT_DOMAIN, "domain", where)
    if domain in TAKEN:
        raise InputError(f"{where}: domain must be another name than {' and '.join(TAKEN)}, got {domain}")
    weight = _number(row.get("weight", 1.0), "weight", where)
    if not 0 < weight < np.inf:
        raise InputError(f"{where}: weight must be above 0, got {weight}")
    pair = "document" in row
    found = _labelled(row, where) if pair else _right_and_wrong(row, where)
    scores = _teacher(row.get("teacher"), len(found), not pair and row.get("positive") is None, where)
    return Row(where, query, tuple((*one, score) for one, score in zip(found, scores)), domain, weight, pair)


def _labelled(row: Mapping, where: str) -> list[tuple[str, float]]:
    if "positive" in row or "negatives" in row:
        raise InputError(f"{where} must hold either document and label, or positive and negatives, got both")
    label = _number(row.get("label"), "label", where)
    if not 0 <= label < np.inf:
        raise InputError(f"{where}: label must be 0 or more, got {label:g}")
    return [(_text(row["document"], "document", where), label)]


def _right_and_wrong(row: Mapping, where: str) -> list[tuple[str, float]]:
    right, wrong = row.get("positive"), row.get("negatives") or []
    if not isinstance(wrong, list) or "negative" in row:
        shown = row.get("negatives") if not isinstance(wrong, list) else row["negative"]
        raise InputError(f"{where}: negatives must be a list of texts, got {str(shown)[:60]!r}")
    found = [] if right is None else [(_text(right, "positive", where), 1.0)]
    found += [(_text(one, "a negative", where), 0.0) for one in wrong]
    if not found:
        raise InputError(f"{where} must hold a positive, negatives, or a document with its label, and holds none")
    if right is not None and any(text == found[0][0] for text, _ in found[1:]):
        raise InputError(f"{where}: a negative must be another text than the positive")
    return found


def _teacher(given: object, count: int, only_wrong: bool, where: str) -> list[float]:
    """Return the scores of a line, NaN where there is none.

    Args:
        only_wrong: whether the line has no positive, whose null may then come first.
    """
    if given is None:
        return [np.nan] * count
    given = given if isinstance(given, list) else [given]
    if only_wrong and len(given) == count + 1 and given[0] is None:
        given = given[1:]
    if len(given) != count:
        raise InputError(f"{where}: teacher must hold a score for each of {count} documents, got {len(given)}")
    return [np.nan if score is None else _number(score, "teacher", where) for score in given]


def _text(value: object, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name} must be a text that is not empty, got {str(value)[:60]!r}")
    return value.strip()


def _number(value: object, name: str, where: str) -> float:
    if isinstance(value, str):  # of a table
        with suppress(ValueError):
            value = float(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
        raise InputError(f"{where}: {name} must be a number, got {str(value)[:60]!r}")
    return float(value)
