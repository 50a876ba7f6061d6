"""Progress of a batch on standard error: a bar in a terminal, else a line from time to time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backlight.errors import InputError, install_hint
from backlight.explain.batch.running import BatchProgress
from backlight.explain.presentation.wording import count_of
from backlight.report.numbers import clock

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

SECONDS_APART = 10  # of the lines, where there is no terminal


@contextmanager
def watcher(quiet: bool) -> Iterator[Callable[[BatchProgress], None]]:
    """Give a function to show progress with, on standard error: a bar in a terminal, else a line now and then."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda progress: None
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

            def show(progress: BatchProgress) -> None:
                bar.update(
                    task, completed=progress.share, description=progress_text(progress), rate=pace.rate(progress)
                )

            yield show
    else:
        yield Lines().show


class Pace:
    """How many rows a second this run does."""

    def __init__(self):
        self.began = time.monotonic()

    def rate(self, progress: BatchProgress) -> str:
        """Return the rate so far, as text."""
        seconds = time.monotonic() - self.began
        return f"{(progress.rows - progress.before) / seconds:,.1f} rows/s" if seconds > 0 else ""

    def left(self, progress: BatchProgress, share_before: float) -> str:
        """Return the time left, as text: what is left of the input at the pace so far."""
        done = progress.share - share_before
        return clock((time.monotonic() - self.began) * (1 - progress.share) / done) + " left" if done > 0 else ""


class Lines(Pace):
    """A line every ten seconds or so."""

    def __init__(self):
        super().__init__()
        self.said, self.share_before = self.began, None

    def show(self, progress: BatchProgress) -> None:
        """Print a line, if it is time for one."""
        if self.share_before is None:
            self.share_before = progress.share
        if time.monotonic() - self.said >= SECONDS_APART:
            self.said = time.monotonic()
            said = [
                progress_text(progress),
                f"{progress.share:.0%}",
                self.rate(progress),
                self.left(progress, self.share_before),
            ]
            print(" · ".join(part for part in said if part), file=sys.stderr, flush=True)


def progress_text(progress: BatchProgress) -> str:
    """Return how far a batch is, in words."""
    rows = count_of(progress.rows, "row")
    if progress.doing == "summary":
        return f"{rows}, summing up"
    before = f" ({progress.before:,} before)" if progress.before else ""
    bad = f", {progress.bad:,} bad" if progress.bad else ""
    left = "" if progress.total is None else f", {progress.total - progress.rows:,} left"
    return f"{rows}{before}{bad}{left}"
