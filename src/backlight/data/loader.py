"""`DataLoader`: batches of a dataset, in the order of a sampler."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from backlight.data.collate import default_collate, default_convert
from backlight.data.dataset import Dataset, IterableDataset
from backlight.data.sampler import BatchSampler, RandomSampler, SequentialSampler, drawn_seed
from backlight.errors import ValueProblem

__all__ = ["DataLoader", "get_worker_info"]

Sample = TypeVar("Sample", covariant=True)


def get_worker_info() -> None:
    """Return None: samples are loaded in the main process, as PyTorch does with `num_workers=0`."""
    return None


class DataLoader(Generic[Sample]):
    """Iterate over a dataset batch by batch.

    Args:
        batch_size: how many samples a batch holds; None gives single samples.
        shuffle: take them in a new random order each time.
        sampler: yields the indices, in place of `shuffle`.
        batch_sampler: yields lists of indices, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: accepted; samples are loaded in this process whatever it is, and are the same.
        collate_fn: makes a batch of a list of samples.
        drop_last: leave the last batch out if it is not full.
        generator: where the random order comes from.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
            pin_memory_device, in_order: accepted, as `num_workers`.

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
        multiprocessing_context=None,
        generator=None,
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
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)

    def __iter__(self) -> Iterator:
        if self.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=2,
            )
        drawn_seed(self.generator)  # PyTorch draws its workers' seed here, with and without workers
        return self._streamed() if self._iterable else self._indexed()

    def _indexed(self) -> Iterator:
        """Yield batches, or samples, of a dataset that has indices."""
        if self.batch_sampler is None:
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
            return
        fetch_many = getattr(self.dataset, "__getitems__", None)
        for indices in self.batch_sampler:
            samples = fetch_many(indices) if callable(fetch_many) else [self.dataset[index] for index in indices]
            yield self.collate_fn(samples)

    def _streamed(self) -> Iterator:
        """Yield batches, or samples, of a dataset that can only be iterated over."""
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        """Return how many batches there are.

        Raises:
            TypeError: the dataset or the sampler does not know its length.
        """
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        full, rest = divmod(count, self.batch_size)
        return full + bool(rest and not self.drop_last)


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
    if persistent and num_workers == 0:
        raise ValueProblem("persistent_workers option needs num_workers > 0")


def _check_no_order(**options) -> None:
    """Raise if an option that orders indices was given for a dataset that has none."""
    for name, value in options.items():
        if value is not None:
            raise ValueProblem(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )
