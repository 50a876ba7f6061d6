"""From what a person named to a source of pairs."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from backlight.errors import InputError
from backlight.explain.batch.collection import Collection
from backlight.explain.batch.files import BLOCK, opened, remove_folder, replacing, suffix_of
from backlight.explain.batch.formats import JsonLines, PairFile, ParquetFiles, Table
from backlight.explain.batch.rows import USUAL, Columns

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
    """Return the source of pairs that a person named (see NOTE [A source] in explain/batch/formats.py).

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
    """Return whether a file's first line has the six fields of a run."""
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
