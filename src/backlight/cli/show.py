"""A ranking in the terminal: each document's words lit from behind by their importance.

NOTE [Without colour]
With NO_COLOR, in a terminal without colours, and in a pipe, the shade cannot be seen. There the strong words are marked
(`*so*`, the strongest `**so**`); everywhere the strongest words are listed with their values.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backlight.errors import InputError
from backlight.explain.attribution import Ranked, Ranking, TextAttribution, Truncation

try:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.padding import Padding
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
    from rich.text import Text
except ImportError as problem:
    raise InputError('the terminal output needs the rich library: pip install "backlight[explain]"') from problem

LEVELS = (0.15, 0.3, 0.5, 0.75)  # the share of the strongest word's importance from which each shade is used
SHADES = {
    "dark": ("#f4ead5 on #3d2c0c", "#fff6e3 on #6d4a0b", "#1a1206 on #b87c18", "bold #1a1206 on #ffbe4d"),
    "light": ("#2a2113 on #fdeecb", "#2a2113 on #fbd98c", "#2a2113 on #f4b13e", "bold #fffaf0 on #a55a00"),
}
SIXTEEN_COLOURS = ("underline", "bold underline", "black on yellow", "bold black on bright_yellow")
MARKS = ("", "", "*", "**")
INDENT = 4  # columns that a text stands in from the edge
LISTED = 7  # strongest words listed beneath a text, if there is room
BAR = 24  # most columns of a score's bar
MANY = 50  # documents from which there is a progress bar
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Screen:
    """Where a ranking is shown.

    Args:
        console: rich's console.
        theme: whether its background is "dark" or "light".
    """

    console: Console
    theme: str = "dark"

    @property
    def shades(self) -> tuple[str, ...]:
        """The style of each level of importance: none where colours cannot be seen."""
        system = self.console.color_system
        if system is None or self.console.no_color:
            return ("",) * len(LEVELS)
        return SIXTEEN_COLOURS if system == "standard" else SHADES[self.theme]

    @property
    def marks(self) -> tuple[str, ...]:
        """What stands around a word of each level: see NOTE [Without colour]."""
        return ("",) * len(LEVELS) if any(self.shades) else MARKS


def screen(theme: str | None = None) -> Screen:
    """Return standard output as a screen.

    Args:
        theme: "dark" or "light"; by default as COLORFGBG says (`15;0` is white on black), else dark.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal of an old encoding must not end the run
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return Screen(
        Console(highlight=False, markup=False, emoji=False),
        theme or ("light" if background in ("7", "15") else "dark"),
    )


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of steps newly done; where there are many, a bar shows them."""
    if total < MANY or not sys.stderr.isatty():
        yield lambda done: None
        return
    columns = TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)


def show(ranking: Ranking, screen: Screen) -> None:
    """Print a ranking: what was asked and how, each document explained, then those that were not."""
    console = screen.console
    console.print(_heading(ranking, screen))
    for ranked in ranking.documents:
        if ranked.attribution is not None:
            console.print()
            console.print(_title(ranked, console.width))
            console.print(Padding(_explained(ranked.attribution.document, screen), (0, 0, 0, INDENT)))
    rest = [ranked for ranked in ranking.documents if ranked.attribution is None]
    if rest:
        console.print("\nranked, not explained")
        for ranked in rest:
            console.print(_title(ranked, console.width))
            if ranked.truncation:
                console.print(Padding(_unread(ranked.truncation), (0, 0, 0, INDENT)))


def _heading(ranking: Ranking, screen: Screen) -> Table:
    """Name the query, the model, the method, and what the shades mean."""
    asked = ranking.mean_query()
    lines = {
        "query": _lit(asked, screen) + _unread(asked.truncation),
        "model": Text(f"{ranking.model}, reads {ranking.max_tokens} tokens of a text"),
        "score": Text(ranking.score_name),
        "method": Text(f"{ranking.method}, no baseline"),
        "shade": _legend(screen),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(Text(name, "dim"), value)
    return table


def _legend(screen: Screen) -> Text:
    """Explain the shades, or the marks that stand for them."""
    bounds = [f"{share:.0%}" for share in LEVELS]
    parts = [
        Text(f"from {bounds[0]}" if not number else bound, style)
        for number, (bound, style) in enumerate(zip(bounds, screen.shades))
    ]
    if any(screen.marks):
        parts = [Text(f"{mark}from {bound}{mark}") for bound, mark in zip(bounds, screen.marks) if mark]
    return Text(" ").join(parts) + Text(" of the text's strongest word")


def _title(ranked: Ranked, width: int) -> Table:
    """Return a document's rank, name and score in one line."""
    columns = min(BAR, width // 4)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=3, justify="right")
    table.add_column(ratio=1, no_wrap=True)
    table.add_column(width=6, justify="right")
    table.add_column(width=columns)
    filled = round(columns * min(1.0, max(0.0, ranked.score)))
    bar = Text("━" * filled) + Text("─" * (columns - filled), "dim")
    name = Text(_ending(_plain(ranked.name), width - columns - 12), "bold")
    table.add_row(Text(str(ranked.rank), "bold"), name, Text(f"{ranked.score:.3f}"), bar)
    return table


def _ending(name: str, width: int) -> str:
    """Return a name that fits: of a long one its end, which tells files apart."""
    if cell_len(name) <= width:
        return name
    while name and cell_len(name) >= width:
        name = name[1:]
    return f"…{name}"


def _explained(text: TextAttribution, screen: Screen) -> Text:
    """Return a text with its words lit, then its strongest words with their values."""
    return (
        _lit(text, screen)
        + _unread(text.truncation)
        + Text(f"\n{_strongest(text, screen.console.width - INDENT)}", "dim")
    )


def _strongest(text: TextAttribution, width: int) -> str:
    """List the strongest words with their values, as many as one line holds, and one at least."""
    listed = [f"{_plain(word.text)} {word.value:.2f}" for word in text.strongest(LISTED)]
    while len(listed) > 1 and cell_len(" · ".join(listed)) > width:
        listed.pop()
    return " · ".join(listed)


def _lit(text: TextAttribution, screen: Screen) -> Text:
    """Return a text with each word in the shade, or between the marks, of its importance."""
    lit = Text()
    for piece, word in text.segments():
        level = None if word is None else level_of(text.share(word))
        piece = _plain(piece)
        if level is None:
            lit.append(piece)
        else:
            mark = screen.marks[level]
            lit.append(f"{mark}{piece}{mark}", screen.shades[level] or None)
    return lit


def level_of(share: float) -> int | None:
    """Return which of the shades a word with this share of the strongest word's importance gets, or None."""
    reached = sum(share >= bound for bound in LEVELS)
    return reached - 1 if reached else None


def _unread(left: Truncation) -> Text:
    """Say how much of a text the model did not read."""
    if not left:
        return Text()
    return Text(
        f" … [{left.words_left_out} more words ({left.tokens_left_out} tokens) that the model does not read]", "italic"
    )


def _plain(text: str) -> str:
    """Return a text in one paragraph, without characters that would command the terminal."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", " ".join(re.split(r"\s+", text)))
