"""Engines: what gives the units of a job to workers; and the loop that goes on until all units are done.

NOTE [An engine]
A function `run(address, workers, task, units)` that gives each unit, in any order, with what `task(unit)` returned in
some process, or with the exception by which the engine gave it up. `workers` is how many processes on this machine are
to be started, 0 to use those at `address`. Units and outcomes travel, no rows: workers read the input and write the
parts themselves. Few units are under way at a time, and closing the iterator ends what it began. An engine may run a
unit twice, or again after its worker died: its part is created once (see NOTE [Packed parts] in
explain/batch/sharding/packed_parts.py).
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backlight.adapters.dask_units import run_on_dask
from backlight.adapters.ray_units import run_on_ray
from backlight.adapters.spark_units import run_on_spark
from backlight.errors import InputError
from backlight.explain.batch.running import BatchProgress
from backlight.explain.batch.sharding.local_processes import run_on_processes
from backlight.explain.batch.sharding.packed_parts import units_done
from backlight.explain.batch.sharding.plan import read_plan, read_units
from backlight.explain.batch.sharding.stores import store_of
from backlight.explain.batch.sharding.unit_worker import Outcome, UnitTask
from backlight.explain.batch.sharding.units import Unit

Run = Callable[[str, int, Callable[[Unit], Outcome], Iterable[Unit]], Iterator[tuple[Unit, Outcome | Exception]]]
ENGINES: Mapping[str, Run] = {
    "local": run_on_processes,
    "dask": run_on_dask,
    "ray": run_on_ray,
    "spark": run_on_spark,
}
LOCAL = re.compile(r"local(?::(\d+))?")
ROUNDS = 5  # in which units that failed are tried again


@dataclass(frozen=True)
class Engine:
    """Where units are done.

    Args:
        name: a key of `ENGINES`.
        address: of its scheduler; nothing where `workers` are started here.
        workers: how many processes are started on this machine; 0 for none.
    """

    name: str
    address: str = ""
    workers: int = 0

    @property
    def threads(self) -> int | None:
        """How many threads each worker computes with, if this machine's cores are divided."""
        return max(1, cores() // self.workers) if self.workers else None


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def engine_named(text: str) -> Engine:
    """Return the engine that a person named.

    >>> engine_named("local:4"), engine_named("dask://10.0.0.1:8786")
    (Engine(name='local', address='', workers=4), Engine(name='dask', address='10.0.0.1:8786', workers=0))

    Raises:
        InputError: there is no such engine.
    """
    name, _, address = text.partition("://") if "://" in text else ("local", "", text)
    if name == "sc" and address:  # Spark Connect's own way of saying it
        return Engine("spark", text)
    local = LOCAL.fullmatch(address)
    if name not in ENGINES or not address or (name == "local" and not local) or (local and local[1] == "0"):
        raise InputError(
            "--on must be local:N, or dask://, ray:// or spark:// with HOST:PORT or local:N, or sc://HOST:PORT, got "
            f"{text}"
        )
    return Engine(name, "", int(local[1] or cores())) if local else Engine(name, address)


def run_units(
    engine: Engine,
    out: Path | str,
    numbers: Iterable[int] | None = None,
    *,
    model: str | None = None,
    given: str | None = None,
    watch: Callable[[BatchProgress], None] = lambda progress: None,
) -> int:
    """Do the units of a planned job that are not done, on an engine; return how many it did.

    Units that failed, on a worker that died or lacks something, are tried again a few times, on any worker.

    Args:
        out: the job's folder or URL.
        numbers: which units; all by default.
        model, given: where workers have the model and the input, if it is not where the plan says.
        watch: called after each unit with how far the job is.

    Raises:
        InputError: units are not done after all; the first failure says which, where, and what to do.
    """
    plan = read_plan(out)
    units = read_units(out, plan)
    before = units_done(store_of(out))
    wanted = range(plan.units) if numbers is None else numbers
    left = [units[number] for number in wanted if number not in before]
    rows_before = sum(units[number].rows for number in before if number < plan.units)
    task = UnitTask(str(out), model, given, engine.threads)
    progress = _Progress(rows_before, plan.rows, watch)
    count = len(left)
    for _ in range(ROUNDS):
        failed: list[tuple[Unit, str]] = []
        with closing(ENGINES[engine.name](engine.address, engine.workers, task, left)) as found:
            for unit, outcome in found:
                if isinstance(outcome, Exception):
                    failed.append((unit, f"unit {unit.number}: {engine.name} gave it up: {_line_of(outcome)}"))
                elif outcome.error is not None:
                    failed.append((unit, outcome.error))
                else:
                    progress.add(outcome)
        did_nothing = len(failed) == len(left)
        left = [unit for unit, _ in failed]
        if not left or did_nothing:
            break
    if left:
        raise InputError(
            f"{len(left):,} of {plan.units:,} units are not done; the others are kept, and the same command resumes. "
            f"{failed[0][1]}"
        )
    return count


class _Progress:
    """Adds up outcomes and shows how far the job is."""

    def __init__(self, before: int, total: int, watch: Callable[[BatchProgress], None]):
        self.progress = BatchProgress("rows", rows=before, before=before, share=before / total, bad=0, total=total)
        self.watch = watch
        watch(self.progress)

    def add(self, outcome: Outcome) -> None:
        """Count a unit that is done."""
        before, rows = self.progress, self.progress.rows + outcome.rows
        self.progress = BatchProgress(
            "rows", rows, before.before, rows / before.total, before.bad + outcome.bad, before.total
        )
        self.watch(self.progress)


def _line_of(problem: Exception) -> str:
    """Return what an engine said: the first line, and the last one, where a worker's traceback has the reason."""
    first, *others = str(problem).strip().splitlines() or [type(problem).__name__]
    said = f"{first} {others[-1].strip()}" if others else first
    return f"{said[:500]} (was its worker killed, or out of memory?)"
