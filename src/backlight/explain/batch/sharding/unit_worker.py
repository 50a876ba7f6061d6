"""A worker: has one model, and does units of a planned job, any of them, in any order, any number of times."""

import os
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.collection import FILE as TEXTS
from backlight.explain.batch.collection import Collection
from backlight.explain.batch.inputs import Source
from backlight.explain.batch.rows import BadRow
from backlight.explain.batch.sharding.packed_parts import is_done, pack, packed_file
from backlight.explain.batch.sharding.plan import Plan, kernels_in_use, read_plan, source_of, version
from backlight.explain.batch.sharding.stores import FolderStore, store_of
from backlight.explain.batch.sharding.units import Unit
from backlight.explain.batch.work import Worker
from backlight.explain.reranker import Reranker
from backlight.kernels import blas
from backlight.kernels.native import compiled


@dataclass(frozen=True)
class Outcome:
    """What became of a unit.

    Args:
        unit: its number.
        rows: how many rows it has, bad ones counted.
        bad: how many could not be used.
        seconds: how long this worker computed; 0 if the unit was done before.
        worker: which process it was, as "host:number".
        created: whether its part is this worker's; otherwise another one was first.
        error: why the unit is not done, in one line; None if it is.
    """

    unit: int
    rows: int
    bad: int = 0
    seconds: float = 0.0
    worker: str = ""
    created: bool = False
    error: str | None = None


@dataclass(frozen=True)
class UnitTask:
    """What an engine calls with a unit, in any process: it loads the job's model when it is first called there.

    Args:
        out: the job's folder or URL.
        model: a model folder on the worker, if it is not where the plan names it.
        given: where the input lies on the worker, likewise.
        threads: how many threads compute; by default as in any process (BACKLIGHT_NUM_THREADS).
    """

    out: str
    model: str | None = None
    given: str | None = None
    threads: int | None = None

    def __call__(self, unit: Unit) -> Outcome:
        """Do a unit; what is wrong with the input or the worker is an outcome too, for an engine retries what "
        "raises."""
        try:
            return worker_for(self).compute(unit)
        except InputError as problem:
            return Outcome(unit.number, unit.rows, worker=this_process(), error=str(problem))


def this_process() -> str:
    """Return the name of this process among all machines'."""
    return f"{socket.gethostname()}:{os.getpid()}"


@cache
def worker_for(task: UnitTask) -> "UnitWorker":
    """Return this process's worker for a task, which has the model in memory."""
    return UnitWorker(task)


class UnitWorker:
    """A process with the model of a job.

    Raises:
        InputError: this machine lacks the plan's version of backlight, its model, its kernels, or the input.
    """

    def __init__(self, task: UnitTask):
        self.out, self.store = task.out, store_of(task.out)
        self.plan = plan = read_plan(task.out)
        where = f"worker {this_process()}"
        if version() != plan.backlight:
            raise InputError(
                f"{where} has backlight {version()}, and {self.out} was planned with {plan.backlight}: install that "
                "version there"
            )
        _use_kernels(plan, where)
        if task.threads and compiled is not None:
            compiled.set_threads(task.threads)
            blas.set_threads(task.threads)
        reranker = _load_model(plan, task.model, where)
        self.worker = Worker(reranker.scorer, plan.settings, plan.english_only)
        self.source = self._source(Path(task.given) if task.given else None, where)
        self._one_at_a_time = threading.Lock()

    def compute(self, unit: Unit) -> Outcome:
        """Compute a unit and create its part, unless that is there.

        Raises:
            InputError: the input is not as it was planned, or the part cannot be written.
        """
        with self._one_at_a_time:
            try:
                return self._done(unit)
            except OSError as problem:
                raise InputError(
                    f"unit {unit.number}, worker {this_process()}: cannot write to or read from "
                    f"{problem.filename or self.out}: {problem.strerror or problem}; once that is repaired, give: "
                    f"backlight batch work {self.out} --units {unit.number}"
                ) from problem
            except InputError as problem:
                raise InputError(f"unit {unit.number}, worker {this_process()}: {problem}") from problem

    def _done(self, unit: Unit) -> Outcome:
        if is_done(self.store, unit.number):
            return Outcome(unit.number, unit.rows, worker=this_process())
        began = time.monotonic()
        results = self.worker.results(unit.read(self.source), unit.row)
        seconds = round(time.monotonic() - began, 3)
        by = {"worker": this_process(), "seconds": seconds}
        content = pack(self.plan.job, unit.number, results, self.plan.settings, by)
        created = self.store.create(packed_file(unit.number), content)
        bad = sum(isinstance(one, BadRow) for one in results)
        return Outcome(unit.number, unit.rows, bad, seconds, this_process(), created)

    def _source(self, given: Path | None, where: str) -> Source:
        """Return the input, ready to be read."""
        folder = self.store.folder if isinstance(self.store, FolderStore) else Path()
        source = source_of(self.plan.source, folder, given)
        named = source.pairs if isinstance(source, Collection) else source.file
        if not named.exists():
            raise InputError(
                f"{where} has no input {named}: mount it there, or say where it lies with backlight batch work --input"
            )
        if isinstance(source, Collection):
            if not isinstance(self.store, FolderStore):
                self._own = tempfile.TemporaryDirectory(prefix="backlight-")
                folder = Path(self._own.name)
                self.store.fetch(TEXTS, folder / TEXTS)
            source.open_texts(folder / TEXTS)
        return source


def _use_kernels(plan: Plan, where: str) -> None:
    """Compute with the kernels of the plan: with others, last digits differ."""
    if plan.model.engine != "backlight" or kernels_in_use() == plan.kernels:
        return
    if compiled is None or plan.kernels == "numpy" or not compiled.use_level(plan.kernels):
        raise InputError(
            f"{where} computes with the kernels {kernels_in_use()}, and the job was planned with {plan.kernels}, so "
            f"last digits would differ: set BACKLIGHT_KERNELS={plan.kernels} there, or plan the job with "
            "BACKLIGHT_KERNELS set to what all workers have"
        )


def _load_model(plan: Plan, given: str | None, where: str) -> Reranker:
    """Return the model of the plan. Raises InputError: it is not there, or is another one."""
    model = plan.model if given is None else plan.model.named(given)
    try:
        found = model.blake2b()
    except InputError as problem:
        raise InputError(
            f"{where} has no model {model.name} ({problem}): copy its folder there, or say where it lies with "
            "backlight batch work --model"
        ) from problem
    if found != plan.model_blake2b:
        raise InputError(
            f"{where} has another model under {model.name} than the job was planned with (its files' hash is {found}, "
            f"not {plan.model_blake2b}): copy the planned one there"
        )
    return model.load()
