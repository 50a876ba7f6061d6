"""Tables of pairs, explained: one function for pipelines of Arrow, pandas, Polars, Dask, Ray, Spark and datasets.

NOTE [Explained tables]
A table with the columns `query` and `document` (others if `columns` says so; `id`, `label`, `query_id` and
`document_id` are read where they are) becomes one of the same kind with the same rows in the same order: first the
columns of its own that have other names, then those of a row of a batch (docs/batch.md), without `row`, `line` and the
checks, and `problem`: why a row could not be used, or null. Their Arrow types are those of `explained_schema`, whatever
the rows hold: text is string, scores are float64, counts int64, words list<struct<text: string, start: int64, end:
int64, value: float, error: float, effect: float>>. The last digits of a score depend on which rows are in a table
together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from backlight.adapters.parquet import arrow_schema
from backlight.adapters.tables import like, to_arrow, with_columns
from backlight.errors import InputError
from backlight.explain.batch.rows import USUAL, BadRow, Columns, Row, rows_of
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.work import Worker
from backlight.explain.reranker import Reranker
from backlight.models.checkpoint import BUILTIN

Table = TypeVar("Table")
OF_PAIR = ("query", "document", "id", "label", "query_id", "document_id")  # the fields of `Columns` that are read


@dataclass(frozen=True)
class TableExplainer:
    """Explains tables (see NOTE [Explained tables]); it may be pickled, and each process loads the model once.

    Args:
        model: a folder, an installed package that carries one, or "builtin".
        settings: what is computed and kept.
        columns: what the columns are called.
        engine: what computes, as `Reranker.from_pretrained` takes it.
    """

    model: str = BUILTIN
    settings: Settings = field(default_factory=Settings)
    columns: Columns = USUAL
    engine: str = "backlight"

    def __call__(self, table: Table) -> Table:
        """Return a table of the same kind, with scores and explanations.

        Raises:
            InputError: a column is missing, or there is no such model.
            InputTypeError: it is no table.
        """
        pairs = to_arrow(table)
        names = {name: getattr(self.columns, name) for name in OF_PAIR}
        for name in (names["query"], names["document"]):
            if name not in pairs.column_names:
                raise InputError(f"a table must have the column {name}, has {', '.join(pairs.column_names) or 'none'}")
        there = [name for name in names.values() if name in pairs.column_names]
        rows = [self._row(record, line) for line, record in enumerate(pairs.select(there).to_pylist(), 1)]
        found = [self._record(row, one) for row, one in zip(rows, self._worker().results(rows), strict=True)]
        return like(table, with_columns(pairs, found, explained_columns(self.settings)))

    def _row(self, record: dict, line: int) -> Row | BadRow:
        (row,) = rows_of(record, line, self.columns)
        return row

    def _record(self, row: Row | BadRow, found: dict | BadRow) -> dict:
        if not isinstance(found, BadRow):
            return found
        shown = {name: getattr(row, name) for name in OF_PAIR} if isinstance(row, Row) else {}
        return {**shown, "problem": found.reason}

    def _worker(self) -> Worker:
        reranker = _loaded(self.model, self.engine)
        return Worker(reranker.scorer, self.settings, reranker.reads_english_only, checks=False)


@cache
def _loaded(model: str, engine: str) -> Reranker:
    """Return a model, which stays in the memory of this process."""
    return Reranker.from_pretrained(model, engine=engine)


def explained_columns(settings: Settings = Settings()) -> dict[str, object]:
    """Return the columns of an explained table with their kinds, as `write_parquet` takes them."""
    left_out = {"row", "line"}
    kinds = {name: kind for name, kind in settings.columns().items() if name not in left_out and name[:6] != "check_"}
    return {**kinds, "problem": "text"}


def explained_schema(settings: Settings = Settings()):
    """Return the Arrow schema of an explained table: what Spark, Dask and others want to know before the first row."""
    return arrow_schema(explained_columns(settings))


def explain_batch(
    table: Table,
    model: str | Path = BUILTIN,
    settings: Settings = Settings(),
    *,
    columns: Columns = USUAL,
    engine: str = "backlight",
) -> Table:
    """Score and explain a table of pairs (see NOTE [Explained tables]).

    Args:
        table: a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or a mapping of names to columns.
        model: a folder, an installed package that carries one, or "builtin"; it is loaded once in each process.
        settings: what is computed and kept.
        columns: what the columns are called.
        engine: what computes, "backlight" or "torch".

    Raises:
        InputError: a column is missing, or there is no such model.
        InputTypeError: it is no table.
    """
    return TableExplainer(str(model), settings, columns, engine)(table)


@dataclass(frozen=True)
class PyTerrierReranker:
    """A transformer for PyTerrier: takes a frame with `qid`, `query`, `docno` and `text`, and ranks it anew.

    `score` and `rank` (from 0, best first, for each `qid`) are replaced; what else an explained table has is added. A
    row that cannot be used has no score, comes last, and says why in `problem`. In a pipeline:
    `retriever >> pt.apply.generic(PyTerrierReranker())`.

    Args:
        explainer: what scores; its columns are PyTerrier's.
    """

    explainer: TableExplainer = field(default_factory=lambda: TableExplainer(columns=PYTERRIER))

    def transform(self, frame: Table) -> Table:
        """Return the frame, ranked by the model's scores.

        Raises:
            InputError: a column is missing.
        """
        if "qid" not in frame.columns:
            raise InputError(f"a table must have the column qid, has {', '.join(map(str, frame.columns)) or 'none'}")
        before = frame.drop(columns=[name for name in ("score", "rank") if name in frame.columns])
        found = self.explainer(before)
        found = found.sort_values("score", ascending=False, kind="stable", na_position="last")
        first_seen: Mapping = {qid: place for place, qid in enumerate(dict.fromkeys(frame["qid"]))}
        found = found.sort_values("qid", key=lambda qids: qids.map(first_seen), kind="stable")
        found["rank"] = found.groupby("qid", sort=False).cumcount()
        return found.drop(columns=["document", "query_id", "document_id", "id"]).reset_index(drop=True)

    __call__ = transform


PYTERRIER = Columns(document="text", query_id="qid", document_id="docno")
