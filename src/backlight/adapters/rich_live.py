"""A picture in the terminal that is kept up to date: the door to the library rich, for those who may do without it."""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

Line = Sequence[tuple[str, str]]  # pieces of text, each with its style: "bold", "dim", "#c97a06", ""


def can_show(out: TextIO) -> bool:
    """Tell whether `out` is a terminal that a picture can be kept up to date in, and rich is there."""
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
