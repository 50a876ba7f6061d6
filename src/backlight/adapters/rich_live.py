"""A live display in the terminal: the adapter for the optional library rich."""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from backlight.report.text import wants_colour

Line = Sequence[tuple[str, str]]  # pieces of text, each with its style: "bold", "dim", "#c97a06", ""


def can_show(out: TextIO) -> bool:
    """Return whether `out` is a terminal that a picture can be kept up to date in, and rich is there."""
    return shows_pictures(out) and importlib.util.find_spec("rich") is not None


def shows_pictures(out: TextIO) -> bool:
    """Return whether `out` is a terminal with colours that lines can be written anew in."""
    return wants_colour(out) and os.environ.get("TERM") != "dumb"


@contextmanager
def shown_live(out: TextIO, draw: Callable[[], list[Line]]) -> Iterator[None]:
    """Keep what `draw` returns up to date below whatever else is printed."""
    console, live, text = (importlib.import_module(f"rich.{name}") for name in ("console", "live", "text"))

    def renderable():
        return text.Text("\n", no_wrap=True, overflow="crop").join(text.Text.assemble(*line) for line in draw())

    terminal = console.Console(file=out, highlight=False)
    with live.Live(console=terminal, refresh_per_second=8, get_renderable=renderable):
        yield
