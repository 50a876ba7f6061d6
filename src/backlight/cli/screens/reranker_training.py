"""Progress of a reranker's training on standard error: a bar in a terminal, else a line from time to time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backlight.errors import InputError, install_hint
from backlight.report.numbers import clock, number
from backlight.training.reranker import TrainingProgress

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text
except ImportError as problem:
    raise InputError(f"the terminal output needs the rich library: {install_hint('explain')}") from problem

SECONDS_APART = 10  # of the lines, where there is no terminal
DOING = {
    "indexing": "indexing documents",
    "embedding": "embedding documents",
    "mining": "mining hard negatives",
    "teaching": "scoring by the teacher",
    "validating": "ranking the validation part",
    "training": "training",
}


@contextmanager
def watcher(quiet: bool) -> Iterator[Callable[[TrainingProgress], None]]:
    """Give a function to show progress with, on standard error: a bar in a terminal, else a line now and then."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda progress: None
    elif console.is_terminal:
        picture = Picture()
        with Live(console=console, refresh_per_second=4, get_renderable=picture.draw, transient=True):
            yield picture.show
    else:
        yield Lines().show


class Picture:
    """What is done and a bar, and below it the numbers."""

    def __init__(self):
        self.progress: TrainingProgress | None = None

    def show(self, progress: TrainingProgress) -> None:
        """Take in progress; the picture is drawn several times a second."""
        self.progress = progress

    def draw(self) -> Group:
        """Return the picture as things stand."""
        if self.progress is None:
            return Group(Text("reading", "dim"))
        bar = Table.grid(padding=(0, 2))
        total = self.progress.total if self.progress.done else None
        bar.add_row(Text(DOING[self.progress.doing]), ProgressBar(total, self.progress.done, width=30))
        return Group(bar, Text(numbers_of(self.progress), "dim"))


class Lines:
    """A line every ten seconds or so, at the begin of something else, and after a look."""

    def __init__(self):
        self.said, self.doing, self.validation = float("-inf"), "", None

    def show(self, progress: TrainingProgress) -> None:
        """Print a line, if it is time for one."""
        news = progress.doing != self.doing or (
            progress.validation is not None and progress.validation != self.validation
        )
        if news or time.monotonic() - self.said >= SECONDS_APART:
            self.said, self.doing, self.validation = (
                time.monotonic(),
                progress.doing,
                progress.validation or self.validation,
            )
            print(" · ".join(filter(None, (DOING[progress.doing], numbers_of(progress)))), file=sys.stderr, flush=True)


def numbers_of(progress: TrainingProgress) -> str:
    """Return the numbers of progress in one line."""
    parts = [f"{progress.done:,} of {progress.total:,}"] if progress.done else []
    if progress.loss is not None:
        parts += [f"loss {number(progress.loss)}", f"{progress.pairs_per_second:,.0f} pairs/s"]
        parts += [f"{clock(progress.seconds_left)} left"]
    if progress.validation:
        overall, *domains = progress.validation.items()
        named = ", ".join(f"{name} {value:.3f}" for name, value in domains)
        parts.append(f"validation nDCG@10 {overall[1]:.3f}" + (f" ({named})" if named else ""))
    return " · ".join(parts)
