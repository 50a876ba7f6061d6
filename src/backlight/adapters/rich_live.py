"""A live display in the terminal: the adapter for the optional library rich."""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

Line = Sequence[tuple[str, str]]  # pieces of text, each with its style: "bold", "dim", "#c97a06", ""


def can_show(out: TextIO) -> bool:
    """Return whether `out` is a terminal that a picture can be kept up to date in, and rich is there."""
    if not out.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return importlib.util.find_spec("rich") is not None


@contextmanager
def shown_live(out: TextIO, draw: Callable[[], list[Line]]) -> Iterator[None]:
    """Keep what `draw` returns up to date below whatever else is printed."""
    console, live, text = (importlib.import_module(f"rich.{name}") for name in ("console", "live", "text"))

    def renderable():
        return text.Text("\n", no_wrap=True, overflow="crop").join(text.Text.assemble(*line) for line in draw())

    terminal = console.Console(file=out, highlight=False)
    with live.Live(console=terminal, refresh_per_second=8, get_renderable=renderable):
        yield
