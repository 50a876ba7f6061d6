"""`DataLoader`: batches of a dataset, in the order of a sampler."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Generic, TypeVar

from backlight.data.collate import default_collate, default_convert
from backlight.data.dataset import Dataset, IterableDataset
from backlight.data.fetching import FetchPlan, LengthChecked
from backlight.data.sampler import BatchSampler, RandomSampler, SequentialSampler, drawn_seed
from backlight.data.worker_info import get_worker_info
from backlight.errors import ValueProblem
from backlight.system.fork_safety import import_unforked
from backlight.tensor.generators import Generator

__all__ = ["DataLoader", "get_worker_info"]

Sample = TypeVar("Sample", covariant=True)
FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class DataLoader(Generic[Sample]):
    """Iterate over a dataset batch by batch.

    Args:
        batch_size: how many samples a batch holds; None gives single samples.
        shuffle: take them in a new random order each time.
        sampler: yields the indices, in place of `shuffle`.
        batch_sampler: yields lists of indices, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: how many processes load batches; 0 loads them in this one.
        collate_fn: makes a batch of a list of samples.
        drop_last: leave the last batch out if it is not full.
        timeout: seconds to wait for a worker's batch before a RuntimeError; 0 waits for ever.
        worker_init_fn: called in each worker with its number, after its generators were seeded.
        multiprocessing_context: how processes are started: "fork", "spawn", "forkserver" or a context of the
            multiprocessing module; by default as that module does.
        generator: where the random order and the workers' seeds come from.
        prefetch_factor: how many batches each worker prepares ahead; by default 2.
        persistent_workers: keep the processes, and their copies of the dataset, from one epoch to the next.
        in_order: False gives batches as they are ready.
        pin_memory, pin_memory_device: accepted; there is no accelerator to pin memory for.

    Raises:
        ValueError: options contradict each other or have values that cannot be used.
    """

    def __init__(
        self,
        dataset: Dataset[Sample],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable | None = None,
        multiprocessing_context: object = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _check_no_order(shuffle=shuffle or None, sampler=sampler, batch_sampler=batch_sampler)
        if sampler is not None and shuffle:
            raise ValueProblem("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueProblem(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueProblem("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(() if self._iterable else sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.drop_last = drop_last
        self.generator = generator
        self.num_workers = num_workers
        self.multiprocessing_context = _context(multiprocessing_context, num_workers)
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._iterator = None  # of persistent workers
        self._length: int | None = None  # the length of an iterable dataset, once `__len__` was called
        _check_worker_count(num_workers, stacklevel=3)

    def __setattr__(self, name: str, value: object) -> None:
        if name in FIXED and name in vars(self):
            raise ValueProblem(
                f"{name} attribute should not be set after {type(self).__name__} is initialized: make another loader"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator:
        batches = self._batches()
        length = self._length
        return batches if length is None else LengthChecked(batches, self.dataset, length, self.num_workers > 0)

    def _batches(self) -> Iterator:
        if self._iterator is not None and self._iterator.can_restart:
            self._iterator.restart()
            return self._iterator
        if self.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=3,
            )
        plan = FetchPlan(self.dataset, self.collate_fn, self.batch_sampler is not None, self.batch_size, self.drop_last)
        tasks = repeat(None) if self._iterable else self._index_sampler
        indices = iter(
            tasks
        )  # in PyTorch's order: the sampler first, then the workers' seed, which is drawn without workers too
        seed = drawn_seed(self.generator)
        if not self.num_workers:
            return map(plan.fetcher(), indices)
        made = self._start_parallel(plan, tasks, seed)
        if self.persistent_workers:
            self._iterator = made
        return made

    @property
    def _index_sampler(self) -> Iterable:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _start_parallel(self, plan: FetchPlan, tasks: Iterable, seed: int) -> Iterator:
        if not self.prefetch_factor:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter, got "
                f"{self.prefetch_factor}: leave it out"
            )
        _check_worker_count(self.num_workers, stacklevel=5)
        return _import_on_use("parallel").start_workers(plan, seed, tasks, self)

    def __len__(self) -> int:
        """Return how many batches there are.

        Raises:
            TypeError: the dataset or the sampler does not know its length.
        """
        if not self._iterable:
            return len(self._index_sampler)
        count = self._length = len(self.dataset)
        if self.batch_size is None:
            return count
        full, rest = divmod(count, self.batch_size)
        return full + bool(rest and not self.drop_last)


def _import_on_use(module: str):
    """Return one of the modules that need multiprocessing, which few scripts use and which is slow to import."""
    return import_unforked(f"backlight.data.{module}")


def _context(option: object, num_workers: int):
    """Return the multiprocessing context for an option: None means the default one."""
    if option is None:
        return None
    if num_workers == 0:
        raise ValueProblem(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    return _import_on_use("worker_pool").resolve_context(option)


def _check_worker_options(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueProblem("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueProblem("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueProblem(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueProblem("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueProblem("persistent_workers option needs num_workers > 0")


def _check_worker_count(count: int, stacklevel: int) -> None:
    """Warn of more workers than there are processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count > processors:
        warnings.warn(
            f"This DataLoader will create {count} worker processes in total. Our suggested max number of worker in "
            f"current system is {processors}, which is smaller than what this DataLoader is going to create. Please be "
            "aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker "
            "number to avoid potential slowness/freeze if necessary.",
            stacklevel=stacklevel,
        )


def _check_no_order(**options) -> None:
    """Raise if an option that orders indices was given for a dataset that has none."""
    for name, value in options.items():
        if value is not None:
            raise ValueProblem(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )
