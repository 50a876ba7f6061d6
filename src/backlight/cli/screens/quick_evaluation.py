"""A quick check in the terminal: the growing table, the progress, the verdict."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from backlight.errors import InputError, install_hint
from backlight.explain.faithfulness.quick import QuickCheck, QuickRow, State, verdict_of
from backlight.explain.verification import THRESHOLD
from backlight.report.intervals import Mean
from backlight.report.text import number

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Table
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

HEADINGS = ("document", "query", "top word", "order", "passes", "s/pair")
NOTES = (
    "document, query: right signs of the strongest words that matter: cut out, they",
    f"move the score by over {100 * THRESHOLD:.0f} % of the candidates' range; top word: the first one.",
    "order: Spearman's correlation of values and the score lost, document words",
)
STEPS = 5  # lines that say how far a check is where there is no terminal
EVERY = 0.1  # seconds between two pictures of the bar


@contextmanager
def live(check: QuickCheck, out: TextIO) -> Iterator[Callable[[State], None]]:
    """Give a function to call with how far a check is: in a terminal it shows a bar and the table so far."""
    if not out.isatty():
        yield _Lines(check, out).tell
        return
    bar = Progress(TextColumn("{task.description}"), BarColumn())
    task = bar.add_task("the first pass", total=None)
    with Live(bar, console=Console(file=out), transient=True, refresh_per_second=1 / EVERY) as screen:
        shown = 0

        def tell(state: State) -> None:
            nonlocal shown
            bar.update(task, completed=state.passes, total=state.expected, description=progress_of(state))
            if state.pairs > shown:
                shown = state.pairs
                screen.update(Group(table_of(check.rows()), bar))

        yield tell


class _Lines:
    """Says how far a check is, `STEPS` times, with the verdict so far."""

    def __init__(self, check: QuickCheck, out: TextIO):
        self._check, self._out, self._shown = check, out, 0
        self._start = time.monotonic()

    def tell(self, state: State) -> None:
        """Print a line if enough pairs were done since the last one, or a step's share of the time went by."""
        step = int(state.pairs * STEPS / state.of)
        if self._check.seconds:
            step = max(step, int((time.monotonic() - self._start) * STEPS / self._check.seconds))
        if min(step, STEPS) > self._shown and state.pairs:
            self._shown = min(step, STEPS)
            verdict = verdict_of(self._check.rows())
            print(f"{progress_of(state)}: {verdict.text if verdict else ''}", file=self._out, flush=True)


def progress_of(state: State) -> str:
    """Return how far a check is in words."""
    return f"{state.passes:,.0f} of about {state.expected:,.0f} passes, {state.pairs} of {state.of} pairs"


def show_quick(check: QuickCheck, about: str, console: Console) -> None:
    """Print the table, what its columns mean, which methods failed, and the verdict."""
    rows = check.rows()
    console.print(about)
    console.print()
    console.print(table_of(rows))
    console.print("\n".join(NOTES), highlight=False, soft_wrap=True)
    for row in rows:
        if row.failed:
            console.print(f"{row.label}: {row.failed}", markup=False)
    verdict = verdict_of(rows)
    console.print()
    console.print(verdict.text if verdict else "no method could be measured on these pairs", style="bold", markup=False)


def table_of(rows: Sequence[QuickRow]) -> Table:
    """Return the rows as rich's table; options stand beneath the method."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method", min_width=27)
    for title in HEADINGS:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        name, *options = name_of(row)
        table.add_row("\n  ".join([name, *options]), *cells_of(row))
    return table


def name_of(row: QuickRow) -> list[str]:
    """Return the method's name, then its options in a text if it has any."""
    options = ", ".join(f"{name}={value}" for name, value in row.variant.options.items())
    return [row.variant.method.name, *([options] if options else [])]


def cells_of(row: QuickRow) -> list[str]:
    """Return the figures of a row as they are shown."""
    counted = "–" if row.signs is None else f"{_share(row.signs)} of {row.signs.count}"
    order = "–" if row.order is None else number(row.order.value, ".2f")
    cost = [f"{row.passes:.0f}", f"{row.seconds:.2f}"] if row.pairs else ["–", "–"]
    return [counted, _share(row.query_signs), _share(row.top), order, *cost]


def _share(mean: Mean | None) -> str:
    return "–" if mean is None else f"{100 * mean.value:.0f} %"


def markdown_of(check: QuickCheck) -> str:
    """Return the table in Markdown, and the verdict."""
    head = ["method", *HEADINGS]
    lines = [head, ["---"] * len(head), *([" ".join(name_of(row)), *cells_of(row)] for row in check.rows())]
    verdict = verdict_of(check.rows())
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n{verdict.text if verdict else 'no method could be measured on these pairs'}"
