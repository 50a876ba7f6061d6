"""Timers time what they are given, and tell of it in PyTorch's words."""

import itertools
import re

import pytest
import torch
from torch.utils import benchmark as torch_benchmark

import backlight
from backlight.utils import benchmark

TIMES = {
    "one": (100, [2.5e-4]),
    "three": (10, [2.5e-3, 2.6e-3, 2.4e-3]),
    "steady": (1000, [1.0, 1.01, 0.99, 1.02, 1.0]),
    "fluctuating": (1, [1e-6, 1.1e-6, 1.3e-6, 0.9e-6, 1.2e-6]),
    "disturbed": (1, [3.0, 9.0, 1.0, 5.0]),
    "fine": (10**7, [1.0, 1.0001, 0.9999, 1.0002, 1.0, 1.0]),
}
TASKS = {
    "a line": {"stmt": "x + 1", "setup": "pass"},
    "labels": {"stmt": "x", "setup": "x = 1", "label": "sum", "sub_label": "small", "description": "fast"},
    "paragraphs": {"stmt": "x\ny", "setup": "x = 1\ny = 2", "sub_label": "two", "num_threads": 2},
    "nothing more": {"stmt": "x", "setup": "", "sub_label": "two"},
}


def shown(one) -> str:
    return re.sub(r"<.*>", "<object>", repr(one))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("times", TIMES)
def test_a_measurement_is_told_as_pytorch_tells_it(times, task):
    found = []
    for tools in (benchmark, torch_benchmark):
        one = tools.Measurement(*TIMES[times], tools.TaskSpec(**TASKS[task]))
        numbers = [one.significant_figures, one.has_warnings, one.meets_confidence(0.2)]
        found.append((shown(one), one.title, one.as_row_name, one.times, numbers, one.num_threads))
        assert [one.median, one.mean, one.iqr] == pytest.approx(
            [getattr(torch_benchmark.Measurement(*TIMES[times], None), name) for name in ("median", "mean", "iqr")]
        )
    assert found[0] == found[1]


def test_measurements_of_one_task_merge():
    found = []
    for tools in (benchmark, torch_benchmark):
        tasks = [tools.TaskSpec(stmt, "") for stmt in ("a", "b")]
        made = [tools.Measurement(2, [1.0 + number], task) for number in range(2) for task in tasks]
        found.append([(one.stmt, one.times) for one in tools.Measurement.merge(made)])
    assert found[0] == found[1]


def test_units_and_figures_are_pytorchs():
    for t in (3e-9, 4.5e-7, 2e-4, 0.03, 1.0, 70.0):
        assert benchmark.select_unit(t) == torch_benchmark.select_unit(t)
        assert benchmark.trim_sigfig(t * 1.23456, 3) == pytest.approx(torch_benchmark.trim_sigfig(t * 1.23456, 3), 1e-5)
    assert benchmark.unit_to_english("us") == torch_benchmark.unit_to_english("us")
    assert benchmark.ordered_unique("abca") == torch_benchmark.ordered_unique("abca")


def test_a_timer_runs_the_statement_as_often_as_asked():
    runs = []
    found = benchmark.Timer(
        "runs.append(x)", "x = 1", globals={"runs": runs}, timer=itertools.count(0, 2).__next__
    ).timeit(300)
    assert (found.number_per_run, found.raw_times, len(runs)) == (300, [2], 303)


def test_a_statement_finds_backlight_as_torch():
    names = {"kept": []}
    benchmark.Timer("\n    kept.append(torch.ones(2))\n    ", globals=names).timeit(1)
    assert isinstance(names["kept"][0], backlight.Tensor)


class Clock:
    """A clock that goes on by so many seconds at each tick."""

    def __init__(self, *steps: float):
        self.now, self.steps = 0.0, itertools.cycle(steps)

    def tick(self) -> None:
        self.now += next(self.steps)

    def __call__(self) -> float:
        return self.now


def blocks_of(tools, clock: Clock, name: str, **options) -> tuple:
    """Return what a timer finds in ticks of a clock, and what it says of each block meanwhile."""
    told = []
    timer = tools.Timer("tick()", globals={"tick": clock.tick}, timer=clock)
    found = getattr(timer, name)(callback=lambda *block: told.append(block), **options)
    return found.number_per_run, found.raw_times, told


@pytest.mark.parametrize("step", [0.25, 1e-3, 1e-5])
def test_blocks_go_on_until_the_time_is_over(step):
    ours, theirs = (
        blocks_of(tools, Clock(step), "blocked_autorange", min_run_time=2.0) for tools in (benchmark, torch_benchmark)
    )
    assert ours == theirs


@pytest.mark.parametrize("steps", [(0.5,), (0.5, 0.7, 0.5, 0.5, 0.5), (0.1, 0.9)])
def test_blocks_go_on_until_the_times_agree(steps):
    ours, theirs = (
        blocks_of(tools, Clock(*steps), "adaptive_autorange", max_run_time=20.0)
        for tools in (benchmark, torch_benchmark)
    )
    assert ours == theirs


def test_the_threads_are_as_many_as_asked_for_and_put_back():
    before, seen = backlight.get_num_threads(), []
    names = {"note": lambda: seen.append(backlight.get_num_threads())}
    benchmark.Timer("note()", globals=names, num_threads=2).timeit(2)
    assert set(seen) == {2}
    assert backlight.get_num_threads() == before


@pytest.mark.parametrize("options", [{"global_setup": "int x;"}, {"language": "rust"}])
def test_what_cannot_be_timed_is_refused_in_pytorchs_words(options):
    with pytest.raises(ValueError) as theirs:
        torch_benchmark.Timer("1", **options)
    with pytest.raises(ValueError) as ours:
        benchmark.Timer("1", **options)
    assert str(ours.value).startswith(str(theirs.value))


def test_a_measured_step_is_slower_than_nothing():
    x = backlight.ones(100, requires_grad=True)
    step = benchmark.Timer("(x * 2).sum().backward()", globals={"x": x}).timeit(50)
    assert step.median > benchmark.Timer("pass").timeit(50).median
    assert torch.utils.benchmark is torch_benchmark
