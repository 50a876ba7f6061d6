"""The texts of a collection by id, in a database file: a corpus of millions takes disk and no memory.

Only the texts that the pairs name are kept. The file is made under a temporary name and renamed when it is complete.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from backlight.explain.batch.files import lines_of, replacing, suffix_of
from backlight.explain.batch.formats import record_of
from backlight.explain.batch.rows import Unusable

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
        self._database = sqlite3.connect(file)

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
            for some in groups(named):
                queries_named, documents_named = zip(*some)
                _put_names(database, "query", queries_named)
                _put_names(database, "document", documents_named)
            for some in groups(judged):
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

    for some in groups(found()):
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
    if not name or any("\ud800" <= character <= "\udfff" for character in name + text):
        raise Unusable("not UTF-8", "must have an id and a text")
    return name, text


def groups(items: Iterable) -> Iterator[list]:
    """Cut what is given into lists of `AT_ONCE`."""
    some: list = []
    for item in items:
        some.append(item)
        if len(some) == AT_ONCE:
            yield some
            some = []
    if some:
        yield some
