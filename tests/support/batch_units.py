"""Planned jobs for tests: an input of a few units, a tiny model, the same job on one machine, workers to kill."""

import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from batch_inputs import bytes_of, many, write_lines
from tiny_bert import write_cross_encoder

from backlight.errors import InputError
from backlight.explain.batch import Settings, run_batch
from backlight.explain.batch.sharding.engines import do_units, engine_named
from backlight.explain.batch.sharding.merge import finish_batch
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.plan import plan_batch, read_plan, read_units
from backlight.explain.batch.sharding.stores import FolderStore
from backlight.explain.batch.sharding.unit_worker import Outcome, UnitTask
from backlight.explain.batch.sharding.units import Unit

PLANNED = ("plan.json", "units.jsonl")  # what a planned job has and one on one machine has not


@dataclass(frozen=True)
class Case:
    """A job: its input, its model's folder, its settings, and what it writes on one machine."""

    file: Path
    model: Path
    settings: Settings
    whole: dict[str, bytes]

    def plan(self, out: Path | str) -> Path | str:
        """Plan the job."""
        plan_batch(self.file, out, ModelReference(str(self.model)), self.settings)
        return out


def make_case(folder: Path, rows: int, of_unit: int, format: str = "jsonl") -> Case:
    """Write an input, one row in seven of it bad, and run its job on one machine."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [record if number % 7 else "{broken" for number, record in enumerate(many(rows))]
    file, model = write_lines(folder / "a.jsonl", lines), write_cross_encoder(folder / "model")
    settings = Settings(rows=of_unit, format=format, options={"words": 2})
    run_batch(file, folder / "whole", ModelReference(str(model)).load(), settings)
    return Case(file, model, settings, bytes_of(folder / "whole"))


def do(out: Path | str, numbers=None, **options) -> list[Outcome]:
    """Do units of a planned job in this process."""
    units, task = units_of(out), UnitTask(str(out), **options)
    return [task(units[number]) for number in (range(len(units)) if numbers is None else numbers)]


def units_of(out: Path | str) -> list[Unit]:
    """Return the units of a planned job."""
    return read_units(out, read_plan(out))


def merged(out: Path | str, folder: Path | None = None) -> dict[str, bytes]:
    """Finish a job, and return its files but those of its plan."""
    return files_but_of_plan(finish_batch(out, folder).folder)


def files_but_of_plan(folder: Path) -> dict[str, bytes]:
    """Return the files of a job's folder as one machine writes them."""
    return {name: content for name, content in bytes_of(folder).items() if name not in PLANNED}


def processes_below(parent: int) -> list[int]:
    """Return the processes that a process began, and those that these began."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, left = [], [parent]
    while left:
        left += (some := children.get(left.pop(), []))
        found += some
    return found


def command_of(process: int) -> str:
    """Return the command line of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(process: int) -> bool:
    """End a process by SIGKILL, and return whether it was there."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, seconds: float = 60.0):
    """Return what a condition gives once that is true."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, "it did not come about in time"
        time.sleep(0.01)
    return found


class Killer:
    """Ends workers by SIGKILL at random moments, until it has done so often enough.

    Args:
        below: the process whose descendants are meant.
        command: what a worker's command line contains.
        kills: how often.
        seconds: the longest pause between two.
    """

    def __init__(self, below: int, command: str, kills: int = 10, seconds: float = 2.0, seed: int = 0):
        self.below, self.command, self.kills, self.seconds = below, command, kills, seconds
        self.killed: list[int] = []
        self._random, self._stop = random.Random(seed), threading.Event()
        self._thread = threading.Thread(target=self._kill_some, daemon=True)

    def __enter__(self) -> "Killer":
        self._thread.start()
        return self

    def __exit__(self, *problem) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def had_enough(self) -> bool:
        """Whether it has killed as many as it wanted."""
        return len(self.killed) >= self.kills

    def _kill_some(self) -> None:
        while not self.had_enough and not self._stop.wait(self._random.uniform(0, self.seconds)):
            workers = [one for one in processes_below(self.below) if self.command in command_of(one)]
            if workers and kill(one := self._random.choice(workers)):
                self.killed.append(one)


def done_while_killed(engine: str, out: Path, killer: Killer) -> None:
    """Do twenty units on an engine while its workers are killed, some of them again until that was often enough."""
    rng, store = random.Random(1), FolderStore(out)
    with killer:
        while not killer.had_enough:
            do_patiently(engine, out)
            for name in rng.sample(sorted(store.names("units")), 12):
                store.remove(f"units/{name}")
    do_patiently(engine, out)


def do_patiently(engine: str, out: Path) -> None:
    """Do all units; an engine that ran out of patience with dying workers is begun again, as a person would."""
    for _ in range(10):
        try:
            do_units(engine_named(engine), out)
            return
        except InputError as problem:
            assert "gave it up" in str(problem) and "the same command goes on" in str(problem)
    raise AssertionError("ten calls were not enough")
