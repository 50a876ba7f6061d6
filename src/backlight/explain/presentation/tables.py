"""Explanations as tables: rows of plain values, pandas frames and Arrow tables. The one file that imports the two."""

from collections.abc import Mapping, Sequence

from backlight.errors import InputError, install_hint
from backlight.system.fork_safety import import_unforked


class Tabular:
    """A result that is also a table; it says its rows."""

    def rows(self) -> list[dict]:
        """Return the rows, each by column."""
        raise InputError(f"{type(self).__name__} must say its rows")

    def to_pandas(self):
        """Return the rows as a pandas frame.

        Raises:
            InputError: pandas is not installed.
        """
        return _library("pandas").DataFrame(self.rows())

    def to_arrow(self):
        """Return the rows as an Arrow table.

        Raises:
            InputError: pyarrow is not installed.
        """
        return _library("pyarrow").Table.from_pylist(self.rows())


def _library(name: str):
    try:
        return import_unforked(name)
    except ImportError as problem:
        raise InputError(f"this table needs the {name} library: {install_hint('tables')}") from problem


def word_rows(texts: Mapping[str, Sequence]) -> list[dict]:
    """Return a row a word.

    Args:
        texts: the words of each text, by what the text is called.
    """
    return [
        {
            "text": name,
            "word": word.text,
            "start": word.start,
            "end": word.end,
            "value": word.value,
            "error": word.error,
            "effect": word.effect,
            "tokens": word.tokens,
        }
        for name, words in texts.items()
        for word in words
    ]
