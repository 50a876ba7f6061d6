"""From what a sampler yields to a batch: the same code in the main process and in a worker."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from backlight.data.dataset import Dataset, IterableDataset


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """Everything needed to make batches.

    Attributes:
        batched: whether a sampler yields lists of indices, or single ones.
        batch_size: how many samples of an iterable dataset make a batch; None gives single samples.
        drop_last: whether the last batch of an iterable dataset is left out if it is not full.
    """

    dataset: Dataset
    collate_fn: Callable
    batched: bool
    batch_size: int | None
    drop_last: bool

    @property
    def streams(self) -> bool:
        """Whether the dataset can only be iterated over."""
        return isinstance(self.dataset, IterableDataset)

    def fetcher(self) -> Callable:
        """Return a function of what a sampler yields that returns the batch, and raises StopIteration at the end."""
        if self.streams:
            batches = map(self.collate_fn, self._stream())
            return lambda _: next(batches)
        return self._many if self.batched else self._one

    def _stream(self) -> Iterator:
        samples = iter(self.dataset)
        return samples if self.batch_size is None else Chunks(samples, self.batch_size, self.drop_last)

    def _one(self, index):
        return self.collate_fn(self.dataset[index])

    def _many(self, indices: list):
        fetch = getattr(self.dataset, "__getitems__", None)
        samples = fetch(indices) if callable(fetch) else [self.dataset[index] for index in indices]
        return self.collate_fn(samples)


class Chunks:
    """Lists of `size` items of an iterator; the last may be shorter, or is dropped."""

    def __init__(self, items: Iterator, size: int, drop_last: bool):
        self._items = items
        self._size = size
        self._drop_last = drop_last
        self._ended = False

    def __iter__(self) -> "Chunks":
        return self

    def __next__(self) -> list:
        group = [] if self._ended else list(islice(self._items, self._size))
        self._ended = len(group) < self._size
        if not group or (self._ended and self._drop_last):
            raise StopIteration
        return group


class LengthChecked:
    """Batches of an iterable dataset with a `__len__`; warns if there are more than that."""

    def __init__(self, batches: Iterator, dataset: IterableDataset, length: int, in_workers: bool):
        self._batches = batches
        self._dataset = dataset
        self._length = length
        self._in_workers = in_workers
        self._given = 0

    def __iter__(self) -> "LengthChecked":
        return self

    def __next__(self):
        batch = next(self._batches)
        self._given += 1
        if self._given > self._length:
            advice = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {self._length}(when accessing "
                f"len(dataloader)), but {self._given} samples have been fetched. {advice if self._in_workers else ''}",
                stacklevel=2,
            )
        return batch
