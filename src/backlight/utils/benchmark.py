"""Timing of small pieces of code, under the names of PyTorch's `torch.utils.benchmark`.

A timer warms up, chooses the number of runs, and fixes the number of threads.
"""

import sys
import timeit
from collections.abc import Callable
from statistics import median
from textwrap import dedent

from backlight.errors import ValueProblem
from backlight.kernels.state_blocks import Block
from backlight.kernels.threads import get_num_threads, set_num_threads
from backlight.utils.measurements import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

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
