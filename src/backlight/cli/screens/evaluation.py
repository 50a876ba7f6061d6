"""A study of faithfulness in the terminal: its progress and its tables."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from backlight.errors import InputError, install_hint
from backlight.explain.faithfulness.columns import PANELS, Column, Panel, cells_of, tables_of
from backlight.explain.faithfulness.table import LinkRow, Row

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Table
    from rich.text import Text
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

STEPS = 20  # lines that tell how far a study is where there is no terminal


@contextmanager
def progress(out: TextIO) -> Iterator[Callable[[float, float], None]]:
    """Give a function to call with the work done and the work in all: a bar in a terminal, else a line now and then."""
    if not out.isatty():
        yield _Lines(out).tell
        return
    columns = (
        TextColumn("measuring"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Tells how far a study is, `STEPS` times."""

    def __init__(self, out: TextIO):
        self._out, self._shown, self._start, self._before = out, 0, time.monotonic(), None

    def tell(self, done: float, total: float) -> None:
        """Print a line if enough was done since the last one. What was kept from an earlier run took no time."""
        now = time.monotonic() - self._start
        if self._before is None or now < 1:
            self._before = done
        if done * STEPS < (self._shown + 1) * total:
            return
        self._shown = int(done * STEPS / total)
        rate = (done - self._before) / now
        left = f", about {(total - done) / rate / 60:.0f} minutes left" if rate > 0 and done < total else ""
        print(f"{done / total:.0%} measured{left}", file=self._out, flush=True)


def show(rows: Sequence[Row], links: Sequence[LinkRow], description: dict, console: Console) -> None:
    """Print what was measured on what, and the tables."""
    pairs = max(row.pairs for row in rows)
    articles = f" ({len(description['held_out'])} held-out articles)" if description["held_out"] else ""
    console.print(f"{description['model']} on {pairs} pairs of {description['data']}{articles}; 95 % intervals")
    for panel, columns, lines in tables_of(rows, links):
        console.print()
        console.print(_table(panel, columns, lines))
    for row in rows:
        if row.failed:
            console.print(f"{row.title}: {row.failed} pairs could not be explained")


def _table(panel: Panel, columns: Sequence[Column], rows: Sequence[Row] | Sequence[LinkRow]) -> Table:
    """Return a panel as rich's table, the best of each column in bold."""
    table = Table(title=panel.title, title_justify="left", box=None, pad_edge=False, caption_justify="left")
    table.add_column("method", min_width=16)
    if panel is PANELS[0]:
        table.add_column("pairs", justify="right")
    for column in columns:
        table.add_column(column.title, justify="right")
    for row, cells in cells_of(columns, rows):
        texts = (Text("" if mean is None else one.brief(mean), "bold" if best else "") for one, mean, best in cells)
        table.add_row(row.title, *([str(row.pairs)] if panel is PANELS[0] else []), *texts)
    table.caption = "\n".join(f"{column.heading}: {column.meaning}" for column in columns)
    return table
