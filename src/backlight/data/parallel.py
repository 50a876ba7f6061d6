"""Parallel loading, main process: which worker fetches which batch, and the order of the results."""

import weakref
from collections.abc import Iterable
from itertools import cycle

from backlight.data.fetching import FetchPlan
from backlight.data.ipc import BEGIN, END, FAILURE, FETCH, Header, Message
from backlight.data.worker_pool import WorkerPool
from backlight.data.workers import Job
from backlight.errors import WorkerError


def start_workers(plan: FetchPlan, base_seed: int, sampler: Iterable, loader: object) -> "ParallelIterator":
    """Start the workers of a DataLoader, and return the iterator over their batches."""
    count = loader.num_workers
    jobs = [Job(plan, number, count, base_seed, loader.worker_init_fn) for number in range(count)]
    return ParallelIterator(
        WorkerPool(loader.multiprocessing_context, jobs),
        sampler,
        prefetch_factor=loader.prefetch_factor,
        timeout=loader.timeout,
        in_order=loader.in_order,
        persistent=loader.persistent_workers,
    )


class ParallelIterator:
    """Batches fetched by a pool of workers.

    What the sampler yields is assigned to the workers in turn, as PyTorch does: so each worker draws its random numbers
    for the same samples. For each batch that is returned, one more task is assigned.

    Args:
        prefetch_factor: how many tasks a worker has at once.
        timeout: seconds to wait for a batch; 0 for ever.
        in_order: return the batches in the order of the tasks; else as they are ready.
        persistent: keep the workers at the end, for `restart`.
    """

    def __init__(
        self,
        pool: WorkerPool,
        sampler: Iterable,
        *,
        prefetch_factor: int,
        timeout: float,
        in_order: bool,
        persistent: bool,
    ):
        self._pool = pool
        self._sampler = sampler
        self._timeout = timeout
        self._in_order = in_order
        self._persistent = persistent
        self._limit = prefetch_factor * len(pool)
        self._epoch = 0
        self._finalizer = weakref.finalize(self, pool.shutdown)
        self.restart()

    @property
    def can_restart(self) -> bool:
        """Whether the workers are still there."""
        return self._finalizer.alive

    def restart(self) -> None:
        """Begin a new epoch, and discard unfinished tasks of the previous one."""
        self._epoch += 1
        self._tasks = enumerate(self._sampler)
        self._assigned: dict[int, int] = {}  # worker by task, in the order of tasks
        self._arrived: dict[int, tuple[str, Message]] = {}
        self._load = [0] * len(self._pool)  # unfinished tasks by worker
        self._working = set(range(len(self._pool)))  # workers that are not at the end of their dataset
        self._rotation = cycle(range(len(self._pool)))
        for worker in self._working:
            self._pool.post(worker, Header(BEGIN, self._epoch), None)
        for _ in range(self._limit):
            self._assign_next()

    def __iter__(self) -> "ParallelIterator":
        return self

    def __next__(self):
        while self._assigned:
            first = next(iter(self._assigned))
            if first in self._arrived:
                return self._take(first)
            header, message = self._receive()
            if header.epoch != self._epoch:
                continue
            if header.kind == END:
                self._mark_exhausted(self._assigned[header.task])
                self._assign_next()
                continue
            self._arrived[header.task] = header.kind, message
            if not self._in_order:
                return self._take(header.task)
        if not self._persistent:
            self._finalizer()
        raise StopIteration

    def _assign_next(self) -> None:
        """Assign the next task to the next worker, if both exist."""
        worker = self._next_worker()
        task, content = (None, None) if worker is None else next(self._tasks, (None, None))
        if task is None:
            return
        self._assigned[task] = worker
        self._load[worker] += 1
        self._pool.post(worker, Header(FETCH, self._epoch, task), content)

    def _next_worker(self) -> int | None:
        for _ in range(len(self._pool)):
            worker = next(self._rotation)
            if worker not in self._working:
                continue
            if self._in_order or self._load[worker] < self._limit // len(self._working):
                return worker
        return None

    def _receive(self) -> tuple[Header, Message]:
        try:
            answer = self._pool.collect(self._working, self._timeout or None)
        except WorkerError:
            self._finalizer()
            self._assigned.clear()
            raise
        if answer is None:
            raise WorkerError(f"DataLoader timed out after {self._timeout} seconds")
        return answer

    def _take(self, task: int):
        """Return a batch that has arrived, or raise the exception of its worker."""
        kind, message = self._arrived.pop(task)
        self._load[self._assigned.pop(task)] -= 1
        self._assign_next()
        if kind == FAILURE:
            raise message.open().exception()
        return message.open()

    def _mark_exhausted(self, worker: int) -> None:
        """Assign no more tasks to a worker whose dataset is exhausted."""
        self._working.discard(worker)
        for task in [task for task, holder in self._assigned.items() if holder == worker and task not in self._arrived]:
            del self._assigned[task]
