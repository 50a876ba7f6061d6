"""How far a reranker's training is: a bar in a terminal, else a line now and then, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backlight.errors import InputError
from backlight.report.numbers import clock, number
from backlight.training.reranker import Stand

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
except ImportError as problem:
    raise InputError('the terminal output needs the rich library: pip install "backlight[explain]"') from problem

SECONDS_APART = 10  # of the lines, where there is no terminal
DOING = {
    "indexing": "indexing documents",
    "embedding": "embedding documents",
    "mining": "looking for wrong documents",
    "teaching": "scoring by the teacher",
    "validating": "ranking the validation part",
    "training": "training",
}


@contextmanager
def watcher(quiet: bool) -> Iterator[Callable[[Stand], None]]:
    """Give a function to show each stand with, on standard error: a bar in a terminal, else a line now and then."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda stand: None
    elif console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[numbers]}")
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None, numbers="")

            def show(stand: Stand) -> None:
                total = stand.total if stand.done else None
                bar.update(
                    task, completed=stand.done, total=total, description=DOING[stand.doing], numbers=numbers_of(stand)
                )

            yield show
    else:
        yield Lines().show


class Lines:
    """A line every ten seconds or so, at the begin of something else, and after a look."""

    def __init__(self):
        self.said, self.doing, self.validation = float("-inf"), "", None

    def show(self, stand: Stand) -> None:
        """Print a line, if it is time for one."""
        news = stand.doing != self.doing or (stand.validation is not None and stand.validation != self.validation)
        if news or time.monotonic() - self.said >= SECONDS_APART:
            self.said, self.doing, self.validation = time.monotonic(), stand.doing, stand.validation or self.validation
            print(" · ".join(filter(None, (DOING[stand.doing], numbers_of(stand)))), file=sys.stderr, flush=True)


def numbers_of(stand: Stand) -> str:
    """Return the numbers of a stand in one line."""
    parts = [f"{stand.done:,} of {stand.total:,}"] if stand.done else []
    if stand.loss is not None:
        parts += [f"loss {number(stand.loss)}", f"{stand.pairs_per_second:,.0f} pairs/s"]
        parts += [f"{clock(stand.seconds_left)} left"]
    if stand.validation:
        overall, *domains = stand.validation.items()
        named = ", ".join(f"{name} {value:.3f}" for name, value in domains)
        parts.append(f"validation nDCG@10 {overall[1]:.3f}" + (f" ({named})" if named else ""))
    return " · ".join(parts)
