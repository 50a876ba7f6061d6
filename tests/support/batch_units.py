"""Planned jobs for tests: an input of a few units, a tiny model, the same job on one machine, workers to kill."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from batch_inputs import bytes_of, many, write_lines
from tiny_bert import write_cross_encoder

from backlight.explain.batch import Settings, run_batch
from backlight.explain.batch.sharding.merge import finish_batch
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.plan import plan_batch, read_plan, read_units
from backlight.explain.batch.sharding.unit_worker import Outcome, UnitTask
from backlight.explain.batch.sharding.units import Unit

PLANNED = ("plan.json", "units.jsonl")  # what a planned job has and one on one machine has not


@dataclass(frozen=True)
class Case:
    """A job: its input, its model's folder or name, its settings, and what it writes on one machine."""

    file: Path
    model: str
    settings: Settings
    whole: dict[str, bytes]

    def plan(self, out: Path | str) -> Path | str:
        """Plan the job."""
        plan_batch(self.file, out, ModelReference(self.model), self.settings)
        return out


def make_case(folder: Path, rows: int, of_unit: int, format: str = "jsonl", model: str | None = None) -> Case:
    """Write an input, one row in seven of it bad, and run its job on one machine, with a random model by default."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [record if number % 7 else "{broken" for number, record in enumerate(many(rows))]
    file, model = write_lines(folder / "a.jsonl", lines), model or str(write_cross_encoder(folder / "model"))
    settings = Settings(rows=of_unit, format=format, options={"words": 2})
    run_batch(file, folder / "whole", ModelReference(model).load(), settings)
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
