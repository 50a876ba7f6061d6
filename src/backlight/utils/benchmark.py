"""Timing of small pieces of code, under the names of PyTorch's `torch.utils.benchmark`.

A timer warms up, chooses the number of runs, and fixes the number of threads.
"""

import sys
import timeit
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from math import ceil, floor, log10
from statistics import median
from textwrap import dedent, indent

import numpy as np

from backlight.errors import ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.kernels.threads import get_num_threads, set_num_threads
from backlight.system.fork_safety import cached_property

__all__ = [
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

MOST_FIGURES = 4
LEAST_INTERVAL = 25e-9  # seconds; the resolution of clocks
WARN_AT, WARN_LOUDLY_AT = 0.1, 0.25  # interquartile range / median
UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """The code that was timed, and its names."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None:
            return self.label + more
        if "\n" not in self.stmt:
            return self.stmt + more
        named = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{named}\n{indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Return the setup code, as a line or as a paragraph."""
        if self.setup in ("pass", ""):
            return ""
        return f"setup:\n{indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return title, description and setup."""
        sections = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{one}\n" if "\n" in one else one for one in sections if one)


FIELDS = {field.name for field in fields(TaskSpec)}


@dataclass(repr=False)
class Measurement:
    """Several timings of one task.

    Args:
        number_per_run: how often the statement ran in each timing.
        raw_times: seconds that each timing took.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name: str):
        if name in FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds that one run of the statement took, in each timing."""
        return [time / self.number_per_run for time in self.raw_times]

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.sort(np.array(self.times, np.float64))

    def _quantile(self, share: float) -> float:
        return float(np.quantile(self._sorted, share))

    @property
    def median(self) -> float:
        """The median time of one run, in seconds."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean time of one run, in seconds."""
        return float(self._sorted.mean())

    @property
    def iqr(self) -> float:
        """The interquartile range of the times, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant figures of the median, given the interquartile range."""
        count = len(self._sorted)
        middle = self._sorted[count // 4 : ceil(3 * count / 4)]
        interval = max(1.645 * float(middle.std()) / len(middle) ** 0.5, LEAST_INTERVAL)
        return min(max(floor(log10(self.median / interval)), 1), MOST_FIGURES)

    def meets_confidence(self, threshold: float = WARN_AT) -> bool:
        """Tell whether the interquartile range is less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary so much that they may have been disturbed."""
        return bool(self._warnings())

    def _warnings(self) -> str:
        if self.meets_confidence(WARN_AT):
            return ""
        environment = "This suggests significant environmental influence."
        cause = "This could indicate system fluctuation." if self.meets_confidence(WARN_LOUDLY_AT) else environment
        share = self.iqr / self.median * 100
        return f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n           {cause}"

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of the measurement in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self._sorted)
        unit, scale = select_unit(self.median)
        low, high = (self._quantile(share) / scale for share in (0.25, 0.75))
        median = f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}"
        spread = f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"
        counted = f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines = [object.__repr__(self), self.task_spec.summarize(), median, spread if count >= 4 else None]
        lines += [counted + ("per measurement, " if count > 1 else ", ") + threads, self._warnings() or None]
        return "\n".join(line for line in lines if line is not None)

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """Return one measurement for each task, with all of its times."""
        groups = defaultdict(list)
        for one in measurements:
            groups[one.task_spec] += one.times
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Return the most readable unit for a time, and its length in seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(log10(t) // 3), "s")
    return unit, UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """Return the name of a unit."""
    return UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Return a number rounded to a number of significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (ceil(log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable) -> list:
    """Return each element once, in the order of first appearance."""
    return list(dict.fromkeys(elements))


timer = timeit.default_timer
MOST_RUNS = 2**31 - 1


class set_torch_threads(Block):  # noqa: N801 - PyTorch's name
    """Set the number of threads inside the block."""

    def __init__(self, n: int):
        self.threads = n

    def _block_state(self) -> int:
        return get_num_threads()

    def _block_change(self, state: int) -> None:
        set_num_threads(self.threads)

    def _block_restore(self, state: int) -> None:
        set_num_threads(state)


class Timer:
    """Times a statement, as `timeit` does, with a warm-up and a fixed number of threads.

    Args:
        stmt: the code to time.
        setup: code that runs once before each timing.
        timer: the clock, in seconds.
        globals: the global names of the code; `torch` is backlight unless given here.
        label, sub_label, description, env: names of the measurement.
        num_threads: the number of threads; 1 by default, so that measurements are comparable.

    Raises:
        ValueError: `language` is not Python, or `global_setup` is given, which only C++ has.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ):
        if language not in ("py", "python"):
            raise ValueProblem(f"Invalid language `{language}`.; only Python is timed here")
        if global_setup:
            raise ValueProblem(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = _plain(stmt), _plain(setup)
        names = {"torch": sys.modules["backlight"], **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement `number` times, after a hundredth of that as warm-up, and return one timing."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Time blocks of runs, large enough for the clock, until `min_run_time` seconds are over.

        Args:
            callback: called with (runs, seconds) after each block.
        """
        return self._blocks(0.2 if min_run_time is None else min_run_time, None, callback, lambda found: True, None)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable | None = None,
    ) -> Measurement:
        """Time blocks of runs until the middle half of the times lies within `threshold` of the median.

        Args:
            min_run_time, max_run_time: seconds to go on at least, and at most.
            callback: called with (runs, seconds) after each block.
        """

        def certain(found: Measurement) -> bool:
            return len(found.raw_times) > 3 and found.meets_confidence(threshold)

        return self._blocks(min_run_time, max_run_time, callback, certain, 0.05)

    def _blocks(
        self, least: float, most: float | None, callback: Callable | None, certain: Callable, sized_for: float | None
    ):
        total, times, done = 0.0, [], False
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(least if sized_for is None else sized_for)
            while total < least or not done:
                times.append(self._timeit(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                done = certain(self._measured(number, times))
                if most is not None and total > most:
                    break
        return self._measured(number, times)

    def _block_size(self, least: float) -> int:
        """Return how many runs a block needs to make the timer's own cost negligible."""
        overhead = median(self._timeit(0) for _ in range(5))
        number = 1
        while number * 10 <= MOST_RUNS:
            taken = self._timeit(number)
            if taken > least or (overhead / taken <= 1e-4 and taken >= least / 1000):
                break
            number *= 10
        return number


def _plain(code: str) -> str:
    """Return code without the indentation and the line breaks around it."""
    return dedent(code).removeprefix("\n").rstrip()
