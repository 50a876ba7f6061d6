"""How far a batch is: a bar in a terminal, else a line now and then, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backlight.errors import InputError
from backlight.explain.batch.running import Stand
from backlight.explain.presentation.wording import count_of
from backlight.report.numbers import clock

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
except ImportError as problem:
    raise InputError('the terminal output needs the rich library: pip install "backlight[explain]"') from problem

SECONDS_APART = 10  # of the lines, where there is no terminal


@contextmanager
def watcher(quiet: bool) -> Iterator[Callable[[Stand], None]]:
    """Give a function to show each stand with, on standard error: a bar in a terminal, else a line now and then."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda stand: None
    elif console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as bar:
            task = bar.add_task("0 rows", total=1.0, rate="")
            pace = Pace()

            def show(stand: Stand) -> None:
                bar.update(task, completed=stand.share, description=progress_text(stand), rate=pace.rate(stand))

            yield show
    else:
        yield Lines().show


class Pace:
    """How many rows a second this run does."""

    def __init__(self):
        self.began = time.monotonic()

    def rate(self, stand: Stand) -> str:
        """Return the rate so far, as text."""
        seconds = time.monotonic() - self.began
        return f"{(stand.rows - stand.before) / seconds:,.1f} rows/s" if seconds > 0 else ""

    def left(self, stand: Stand, share_before: float) -> str:
        """Return the time left, as text: what is left of the input at the pace so far."""
        done = stand.share - share_before
        return clock((time.monotonic() - self.began) * (1 - stand.share) / done) + " left" if done > 0 else ""


class Lines(Pace):
    """A line every ten seconds or so."""

    def __init__(self):
        super().__init__()
        self.said, self.share_before = self.began, None

    def show(self, stand: Stand) -> None:
        """Print a line, if it is time for one."""
        if self.share_before is None:
            self.share_before = stand.share
        if time.monotonic() - self.said >= SECONDS_APART:
            self.said = time.monotonic()
            said = [progress_text(stand), f"{stand.share:.0%}", self.rate(stand), self.left(stand, self.share_before)]
            print(" · ".join(part for part in said if part), file=sys.stderr, flush=True)


def progress_text(stand: Stand) -> str:
    """Return how far a batch is, in words."""
    rows = count_of(stand.rows, "row")
    if stand.doing == "summary":
        return f"{rows}, summing up"
    before = f" ({stand.before:,} before)" if stand.before else ""
    bad = f", {stand.bad:,} bad" if stand.bad else ""
    left = "" if stand.total is None else f", {stand.total - stand.rows:,} left"
    return f"{rows}{before}{bad}{left}"
