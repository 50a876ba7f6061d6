"""The main process's side of loading in parallel: who fetches which batch, and in which order they are given."""

import weakref
from collections.abc import Iterable
from itertools import cycle

from backlight.data.fetching import Recipe
from backlight.data.ipc import BEGIN, END, FAILURE, FETCH, Label, Parcel
from backlight.data.worker_pool import Crew
from backlight.data.workers import Job
from backlight.errors import WorkerError


def started(recipe: Recipe, base_seed: int, sampler: Iterable, loader) -> "ParallelIterator":
    """Start the workers that a DataLoader's options ask for, and return the iterator over their batches."""
    count = loader.num_workers
    jobs = [Job(recipe, number, count, base_seed, loader.worker_init_fn) for number in range(count)]
    return ParallelIterator(
        Crew(loader.multiprocessing_context, jobs),
        sampler,
        prefetch_factor=loader.prefetch_factor,
        timeout=loader.timeout,
        in_order=loader.in_order,
        persistent=loader.persistent_workers,
    )


class ParallelIterator:
    """Batches that a crew of workers fetches.

    The tasks are what the sampler yields, handed out in turn, as PyTorch does: so each worker draws its random numbers
    for the same samples. One more is handed out for each batch given.

    Args:
        prefetch_factor: how many tasks a worker has at once.
        timeout: seconds to wait for a batch; 0 for ever.
        in_order: give the batches in the order of the tasks; else as they are ready.
        persistent: keep the workers at the end, for `restart`.
    """

    def __init__(
        self, crew: Crew, sampler: Iterable, *, prefetch_factor: int, timeout: float, in_order: bool, persistent: bool
    ):
        self._crew = crew
        self._sampler = sampler
        self._timeout = timeout
        self._in_order = in_order
        self._persistent = persistent
        self._at_once = prefetch_factor * len(crew)
        self._epoch = 0
        self._dismiss = weakref.finalize(self, crew.dismiss)
        self.restart()

    @property
    def can_restart(self) -> bool:
        """Whether the workers are still there."""
        return self._dismiss.alive

    def restart(self) -> None:
        """Begin a new epoch, and give up what is under way of the one before."""
        self._epoch += 1
        self._tasks = enumerate(self._sampler)
        self._assigned: dict[int, int] = {}  # worker by task, in the order of tasks
        self._arrived: dict[int, tuple[str, Parcel]] = {}
        self._load = [0] * len(self._crew)  # tasks by worker that are not given yet
        self._working = set(range(len(self._crew)))  # workers that are not at the end of their dataset
        self._turns = cycle(range(len(self._crew)))
        for worker in self._working:
            self._crew.post(worker, Label(BEGIN, self._epoch), None)
        for _ in range(self._at_once):
            self._hand_out()

    def __iter__(self) -> "ParallelIterator":
        return self

    def __next__(self):
        while self._assigned:
            first = next(iter(self._assigned))
            if first in self._arrived:
                return self._given(first)
            label, parcel = self._next_answer()
            if label.epoch != self._epoch:
                continue
            if label.kind == END:
                self._retire(self._assigned[label.task])
                self._hand_out()
                continue
            self._arrived[label.task] = label.kind, parcel
            if not self._in_order:
                return self._given(label.task)
        if not self._persistent:
            self._dismiss()
        raise StopIteration

    def _hand_out(self) -> None:
        """Give the next task to the next worker, if there are such."""
        worker = self._next_worker()
        task, content = (None, None) if worker is None else next(self._tasks, (None, None))
        if task is None:
            return
        self._assigned[task] = worker
        self._load[worker] += 1
        self._crew.post(worker, Label(FETCH, self._epoch, task), content)

    def _next_worker(self) -> int | None:
        for _ in range(len(self._crew)):
            worker = next(self._turns)
            if worker not in self._working:
                continue
            if self._in_order or self._load[worker] < self._at_once // len(self._working):
                return worker
        return None

    def _next_answer(self) -> tuple[Label, Parcel]:
        try:
            answer = self._crew.collect(self._working, self._timeout or None)
        except WorkerError:
            self._dismiss()
            self._assigned.clear()
            raise
        if answer is None:
            raise WorkerError(f"DataLoader timed out after {self._timeout} seconds")
        return answer

    def _given(self, task: int):
        """Return a batch that has arrived, or raise what its worker raised."""
        kind, parcel = self._arrived.pop(task)
        self._load[self._assigned.pop(task)] -= 1
        self._hand_out()
        if kind == FAILURE:
            raise parcel.open().exception()
        return parcel.open()

    def _retire(self, worker: int) -> None:
        """Count no more on a worker whose dataset has come to its end."""
        self._working.discard(worker)
        for task in [task for task, holder in self._assigned.items() if holder == worker and task not in self._arrived]:
            del self._assigned[task]
