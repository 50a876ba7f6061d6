"""Collections: a corpus, queries, and files that say which pairs to score: judgements (qrels) or a run.

A BEIR folder has corpus.jsonl, queries.jsonl and qrels/*.tsv. TREC's files are the same thing in other columns: a run
has `query Q0 document rank score tag` in each line, judgements `query 0 document grade`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.checksums import Damaged, Records, Repair
from backlight.explain.batch.files import Fingerprint, lines_of
from backlight.explain.batch.rows import BadRow, Row, Unusable, bad_row
from backlight.explain.batch.texts import FILE, RECORD, TextStore, make_store

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
    """Pairs that are named by ids (see NOTE [A source] in explain/batch/formats.py).

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
        self._store[:] = [TextStore(folder / FILE)]

    def close(self) -> None:
        """Close the texts' database."""
        for store in self._store:
            store.close()
        self._store.clear()

    def rows(self) -> Iterator[Row | BadRow]:
        """Give the pairs, and the lines that are none."""
        (store,) = self._store
        for one in named_in(self.pairs):
            if isinstance(one, BadRow):
                yield one
                continue
            try:
                query = self._text(store, "query", one.query, self.queries)
                document = self._text(store, "document", one.document, self.corpus)
            except Unusable as problem:
                yield bad_row(one.line, problem, f"{one.query} {one.document}")
                continue
            grade = store.grade(one.query, one.document) if one.grade is None else one.grade
            yield Row(one.line, f"{one.query}/{one.document}", query, document, grade, one.query, one.document)

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
    for number, line in lines_of(file):
        text = line.decode("utf-8", "surrogateescape")
        try:
            yield _named(number, text)
        except Unusable as problem:
            if number > 1 or "query" not in text.lower():
                yield bad_row(number, problem, text)


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
