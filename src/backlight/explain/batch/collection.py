"""Collections: a corpus, queries, and files that say which pairs to score: judgements (qrels) or a run.

A BEIR folder has corpus.jsonl, queries.jsonl and qrels/*.tsv. TREC's files are the same thing in other columns: a run
has `query Q0 document rank score tag` in each line, judgements `query 0 document grade`. Texts are looked up by id in a
database file, which is made under a temporary name and holds those that the pairs name: a corpus of millions takes disk
and no memory.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.checksums import Damaged, Records, Repair
from backlight.explain.batch.files import Fingerprint, lines_of, placed_lines, replacing, suffix_of
from backlight.explain.batch.rows import START, BadRow, Place, Row, Unusable, bad_row, batched, record_of, rows_from
from backlight.models.texts import no_text_because

SCHEMA = """
CREATE TABLE document (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
CREATE TABLE query (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
CREATE TABLE judged (query TEXT, document TEXT, grade REAL, PRIMARY KEY (query, document)) WITHOUT ROWID;
CREATE TABLE unreadable (kind TEXT PRIMARY KEY, lines INTEGER, first INTEGER) WITHOUT ROWID;
"""
AT_ONCE = 10_000
FILE, RECORD = "texts.sqlite", "texts"


class TextStore:
    """Texts and judgements by id. `file`: the database."""

    def __init__(self, file: Path):
        self._database = sqlite3.connect(
            f"{file.resolve().as_uri()}?immutable=1", uri=True
        )  # no locks: it may be on NFS

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def text(self, kind: str, name: str) -> str | None:
        """Return a "document" or a "query"; None if the collection has none of that id."""
        found = self._database.execute(f"SELECT text FROM {kind} WHERE id = ?", (name,)).fetchone()
        return found and found[0]

    def grade(self, query: str, document: str) -> float | None:
        """Return how well a document was judged; None if it was not judged."""
        found = self._database.execute(
            "SELECT grade FROM judged WHERE query = ? AND document = ?", (query, document)
        ).fetchone()
        return found and found[0]

    def grades(self, query: str) -> list[float]:
        """Return all grades of a query's documents, best first."""
        found = self._database.execute("SELECT grade FROM judged WHERE query = ? ORDER BY grade DESC", (query,))
        return [grade for (grade,) in found]

    def unreadable(self, kind: str) -> str:
        """Return how many lines of a file of texts could not be read, in words; nothing, if all could."""
        found = self._database.execute("SELECT lines, first FROM unreadable WHERE kind = ?", (kind,)).fetchone()
        return f"; {found[0]:,} of its lines could not be read, the first is line {found[1]:,}" if found else ""


def make_store(
    file: Path,
    named: Iterable[tuple[str, str]],
    judged: Iterable[tuple[str, str, float]],
    documents: Path,
    queries: Path,
) -> None:
    """Write the database.

    Args:
        named: query and document ids of the pairs whose texts are needed.
        judged: query id, document id, grade.
    """
    with replacing(file) as temporary:
        temporary.unlink(missing_ok=True)
        with closing(sqlite3.connect(temporary)) as database:
            database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
            for some in batched(named, AT_ONCE):
                queries_named, documents_named = zip(*some)
                _put_names(database, "query", queries_named)
                _put_names(database, "document", documents_named)
            for some in batched(judged, AT_ONCE):
                database.executemany("INSERT OR REPLACE INTO judged VALUES (?, ?, ?)", some)
            for kind, texts in (("query", queries), ("document", documents)):
                _put_texts(database, kind, texts)
            database.commit()


def _put_names(database: sqlite3.Connection, kind: str, names: Iterable[str]) -> None:
    """Put in the ids whose texts are wanted."""
    database.executemany(f"INSERT OR IGNORE INTO {kind} (id) VALUES (?)", ((name,) for name in names))


def _put_texts(database: sqlite3.Connection, kind: str, file: Path) -> None:
    """Put the texts of a file to the ids that are wanted, and count the lines that hold none."""
    unreadable: list[int] = []

    def found() -> Iterator[tuple[str, str]]:
        for number, line in lines_of(file):
            try:
                name, text = text_of(line, file)
                yield text, name
            except Unusable:
                unreadable.append(number)

    for some in batched(found(), AT_ONCE):
        database.executemany(f"UPDATE {kind} SET text = ? WHERE id = ?", some)
    if unreadable:
        database.execute("INSERT INTO unreadable VALUES (?, ?, ?)", (kind, len(unreadable), unreadable[0]))


def text_of(line: bytes, file: Path) -> tuple[str, str]:
    """Return the id and the text of a line: JSON with _id, title and text, as BEIR has it, or id and text cut by a tab.

    A title stands before its text.

    Raises:
        Unusable: the line holds neither.
    """
    if suffix_of(file) in (".tsv", ".txt"):
        name, *parts = line.decode("utf-8", "surrogateescape").split("\t")
    else:
        record = record_of(line)
        if not isinstance(record, dict):
            raise Unusable("wrong type", "must be an object")
        name = next((str(record[key]) for key in ("_id", "id", "docid", "doc_id") if key in record), "")
        body = next((record[key] for key in ("text", "contents", "body") if key in record), None)
        parts = [part for part in (record.get("title"), body) if isinstance(part, str)]
    text = " ".join(part.strip() for part in parts).strip()
    if not name or no_text_because(name + text):
        raise Unusable("not UTF-8", "must have an id and a text")
    return name, text


RUN_FIELDS = 6


@dataclass(frozen=True)
class Named:
    """A line of a run or of judgements."""

    line: int
    query: str
    document: str
    grade: float | None  # None in a run


@dataclass(frozen=True)
class Collection:
    """Pairs that are named by ids (see NOTE [A source] in explain/batch/inputs.py).

    Args:
        pairs: a run, or judgements.
        corpus, queries: texts by id.
        qrels: judgements; None where there are none.
    """

    pairs: Path
    corpus: Path
    queries: Path
    qrels: Path | None = None
    _store: list[TextStore] = field(default_factory=list, compare=False, repr=False)

    kind = "collection"

    @classmethod
    def of_folder(cls, folder: Path, *, split: str | None = None, run: Path | None = None) -> "Collection":
        """Return the collection in a BEIR folder.

        Args:
            split: which qrels, by their file's name; by default the only ones, or "test".
            run: the pairs to score; by default those that were judged.

        Raises:
            InputError: a file is missing.
        """
        found = {file.name.split(".")[0]: file for file in sorted((folder / "qrels").glob("*.tsv*"))}
        if split is None:
            split = "test" if "test" in found or len(found) != 1 else next(iter(found))
        qrels = found.get(split)
        if qrels is None and (run is None or found):
            there = f"has {', '.join(found)}" if found else "has none"
            raise InputError(f"{folder / 'qrels'} must have {split}.tsv, {there}: choose with --split, or give a --run")
        corpus, queries = (_either(folder, name) for name in ("corpus.jsonl", "queries.jsonl"))
        return cls(run or qrels, corpus, queries, qrels)

    @property
    def files(self) -> list[Path]:
        """What the input consists of."""
        return list(dict.fromkeys(file for file in (self.pairs, self.corpus, self.queries, self.qrels) if file))

    def total(self, fingerprints: Sequence[Fingerprint]) -> int:
        """Return how far `line` counts: the pairs stand in the first file."""
        return fingerprints[0].lines

    def prepare(self, records: Records, notice: Callable[[Repair], None]) -> None:
        """Look up the texts that the pairs name, once, and keep them in the job's folder."""
        folder = records.folder
        try:
            records.verified(RECORD)
        except Damaged as problem:
            if (folder / FILE).exists():
                notice(Repair(problem.file, str(problem), "the texts are looked up again"))
            named = ((one.query, one.document) for one in named_in(self.pairs) if isinstance(one, Named))
            judged = named_in(self.qrels) if self.qrels else ()
            grades = ((one.query, one.document, one.grade) for one in judged if _has_grade(one))
            make_store(folder / FILE, named, grades, self.corpus, self.queries)
            records.write(RECORD, [FILE])
        self.open_texts(folder / FILE)

    def open_texts(self, file: Path) -> None:
        """Take the texts from a database that `prepare` made."""
        self._store[:] = [TextStore(file)]

    def close(self) -> None:
        """Close the texts' database."""
        for store in self._store:
            store.close()
        self._store.clear()

    def rows(self, start: Place = START) -> Iterator[Row | BadRow]:
        """Give the pairs, and the lines that are none, from the one at `start`."""
        yield from rows_from(self.records(start), start)

    def records(self, start: Place = START) -> Iterator[tuple[Place, Iterable[Row | BadRow]]]:
        """Give each pair's place and its row, from the pair at `start`."""
        (store,) = self._store
        for place, one in placed_names(self.pairs, start):
            yield place, [one if isinstance(one, BadRow) else self._row(store, one)]

    def _row(self, store: TextStore, one: "Named") -> Row | BadRow:
        try:
            query = self._text(store, "query", one.query, self.queries)
            document = self._text(store, "document", one.document, self.corpus)
        except Unusable as problem:
            return bad_row(one.line, problem, f"{one.query} {one.document}")
        grade = store.grade(one.query, one.document) if one.grade is None else one.grade
        return Row(one.line, f"{one.query}/{one.document}", query, document, grade, one.query, one.document)

    def ideal(self, query_id: str) -> list[float] | None:
        """Return all grades of a query's documents, best first."""
        return self._store[0].grades(query_id) if self.qrels else None

    def _text(self, store: TextStore, kind: str, name: str, file: Path) -> str:
        text = store.text(kind, name)
        if text is None:
            raise Unusable("not in the collection", f"{kind} {name} must be in {file.name}{store.unreadable(kind)}")
        if not text:
            raise Unusable("empty text", f"{kind} {name} must not be empty")
        return text


def _has_grade(one: Named | BadRow) -> bool:
    return isinstance(one, Named) and one.grade is not None


def _either(folder: Path, name: str) -> Path:
    """Return a file, or its gzipped version."""
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return file
    raise InputError(f"{folder} must have {name} (or {name}.gz)")


def named_in(file: Path) -> Iterator[Named | BadRow]:
    """Give the pairs that a run or judgements name, and the lines that name none; a header is left out."""
    for _, one in placed_names(file):
        yield one


def placed_names(file: Path, start: Place = START) -> Iterator[tuple[Place, Named | BadRow]]:
    """Give what `named_in` gives, each with where its line begins, from the line at `start`."""
    for place, line in placed_lines(file, start):
        text = line.decode("utf-8", "surrogateescape")
        try:
            yield place, _named(place.line, text)
        except Unusable as problem:
            if place.line > 1 or "query" not in text.lower():
                yield place, bad_row(place.line, problem, text)


def _named(number: int, text: str) -> Named:
    parts = text.split("\t") if "\t" in text else text.split()
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Unusable("not UTF-8", "must be UTF-8")
    if len(parts) == RUN_FIELDS:
        return Named(number, parts[0], parts[2], None)
    if len(parts) not in (3, 4):
        raise Unusable("not a run or judgement", f"must have 6 fields (a run) or 3 or 4 (judgements), got {len(parts)}")
    try:
        return Named(number, parts[0], parts[-2], float(parts[-1]))
    except ValueError as problem:
        raise Unusable("not a run or judgement", f"the grade must be a number, got {parts[-1]}") from problem
