"""Parquet in and out: the one file that imports pyarrow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from backlight.errors import InputError, install_hint

ROWS_AT_ONCE = 1024


def pyarrow_library():
    """Return pyarrow. Raises InputError: it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise InputError(
            f"Parquet and Arrow tables need the pyarrow library: {install_hint('batch')}; JSON lines (--format "
            "jsonl) need none"
        ) from problem
    return pyarrow


def _opened(file: Path):
    pyarrow = pyarrow_library()
    try:
        return pyarrow.parquet.ParquetFile(file)
    except (OSError, pyarrow.ArrowException) as problem:
        raise InputError(f"cannot read {file} as Parquet: {problem}") from problem


def writer_version() -> str:
    """Return the version of the library: bytes are the same only for the same one."""
    return pyarrow_library().__version__


def columns_in(file: Path) -> list[str]:
    """Return the names of a file's columns."""
    with _opened(file) as content:
        return content.schema_arrow.names


def count_rows(file: Path) -> int:
    """Return how many rows a file has."""
    with _opened(file) as content:
        return content.metadata.num_rows


def read_records(file: Path, names: Sequence[str] | None = None, *, first: int = 0) -> Iterator[dict]:
    """Give the rows of a file, read a thousand at a time.

    Args:
        names: the columns that are wanted, those of them that are there; all by default.
        first: how many rows are left out; the groups of rows before are not read.
    """
    pyarrow = pyarrow_library()
    with _opened(file) as content:
        there = content.schema_arrow.names
        wanted = None if names is None else [name for name in dict.fromkeys(names) if name in there]
        groups, ends = range(content.num_row_groups), 0
        for group in groups:
            ends += (rows := content.metadata.row_group(group).num_rows)
            if ends > first:
                groups, first = groups[group:], first - ends + rows
                break
        try:
            for some in content.iter_batches(ROWS_AT_ONCE, row_groups=groups, columns=wanted):
                yield from some.slice(min(first, some.num_rows)).to_pylist()
                first = max(0, first - some.num_rows)
        except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as problem:
            raise InputError(f"cannot read {file} to its end: {problem}") from problem


def write_parquet(file: Path | BinaryIO, groups: Iterable[Sequence[Mapping]], kinds: Mapping[str, object]) -> None:
    """Write records as a Parquet file, a group of rows for each list.

    Args:
        kinds: the columns in their order, each "int", "float", "single" or "text", or a mapping of the same for a list
            of records.
    """
    pyarrow, schema = pyarrow_library(), arrow_schema(kinds)
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as out:
        for group in groups:
            out.write_table(pyarrow.Table.from_pylist(list(group), schema=schema))


def arrow_schema(kinds: Mapping[str, object]):
    """Return the Arrow schema of columns, as `write_parquet` takes them."""
    pyarrow = pyarrow_library()
    return pyarrow.schema([(name, _type(pyarrow, kind)) for name, kind in kinds.items()])


def _type(pyarrow, kind):
    if isinstance(kind, Mapping):
        return pyarrow.list_(pyarrow.struct([(name, _type(pyarrow, inner)) for name, inner in kind.items()]))
    makers = {"int": pyarrow.int64, "float": pyarrow.float64, "single": pyarrow.float32, "text": pyarrow.string}
    return makers[kind]()
