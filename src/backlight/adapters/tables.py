"""Tables of other libraries, to Arrow and back: pyarrow's, pandas', Polars' and plain columns, as datasets has them."""

import importlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

from backlight.adapters.parquet import arrow_schema, pyarrow_library
from backlight.errors import InputTypeError

Table = TypeVar("Table")


def _library_of(table: object) -> str:
    return type(table).__module__.partition(".")[0]


def to_arrow(table: object):
    """Return a table as pyarrow's.

    Args:
        table: a pyarrow Table or RecordBatch, a pandas or Polars DataFrame, or a mapping of names to columns.

    Raises:
        InputTypeError: it is none of them.
    """
    pyarrow, library = pyarrow_library(), _library_of(table)
    if library == "pyarrow" and isinstance(table, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([table])
    if library == "pyarrow" and isinstance(table, pyarrow.Table):
        return table
    if library == "pandas":
        return pyarrow.Table.from_pandas(table, preserve_index=False)
    if library == "polars" and hasattr(table, "to_arrow"):
        return table.to_arrow()
    if isinstance(table, Mapping):
        return pyarrow.table({name: list(column) for name, column in table.items()})
    raise InputTypeError(
        "a table must be a pyarrow Table or RecordBatch, a pandas or Polars DataFrame or a mapping of names to "
        f"columns, got {type(table).__name__}"
    )


def like(table: Table, found) -> Table:
    """Return a pyarrow Table as the kind of table that another one is."""
    library = _library_of(table)
    if library == "pyarrow":
        pyarrow = pyarrow_library()
        if isinstance(table, pyarrow.Table):
            return found
        return (found.combine_chunks().to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=found.schema)])[0]
    if library == "pandas":
        return found.to_pandas()
    if library == "polars":
        return importlib.import_module("polars").from_arrow(found)
    return found.to_pydict()


def with_columns(table, records: Sequence[Mapping], kinds: Mapping[str, object]):
    """Return a pyarrow Table with the columns of `records`, after the columns of `table` that have other names.

    Args:
        kinds: the columns, as `write_parquet` takes them.
    """
    made = pyarrow_library().Table.from_pylist(list(records), schema=arrow_schema(kinds))
    for name in [name for name in table.column_names if name not in kinds][::-1]:
        made = made.add_column(0, table.schema.field(name), table.column(name))
    return made
