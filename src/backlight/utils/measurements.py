"""Results of a timer: times, their median and spread, and PyTorch's text for them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import ceil, floor, log10
from textwrap import indent

import numpy as np

from backlight.system.fork_safety import cached_property

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
