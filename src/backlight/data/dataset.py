"""Datasets: what can be indexed, or iterated, sample by sample."""

import bisect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from backlight.errors import MissingMethodError, ValueProblem
from backlight.tensor.random_factories import randperm
from backlight.tensor.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples reached by index: a subclass writes `__getitem__`, and `__len__` for the usual samplers."""

    def __getitem__(self, index: int) -> Sample:
        """Return one sample.

        Raises:
            NotImplementedError: the subclass has no `__getitem__`.
        """
        raise MissingMethodError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class Gathered(Sequence):
    """Samples requested together: one by one as the dataset gives them, or all as one batch.

    A dataset's `__getitems__` may return this in place of a list; `default_collate` then takes the batch.

    Args:
        collated: computes the batch, which must be what collating the samples one by one would give.
    """

    def __init__(self, dataset: "Dataset", indices: Sequence[int], collated: Callable):
        self._dataset = dataset
        self._indices = indices
        self.collated = collated

    def __getitem__(self, index: int):
        chosen = self._indices[index]
        return [self._dataset[each] for each in chosen] if isinstance(index, slice) else self._dataset[chosen]

    def __len__(self) -> int:
        return len(self._indices)


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Samples that come one after the other: a subclass writes `__iter__`."""

    def __add__(self, other: "IterableDataset") -> "ChainDataset":
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample i is the tuple of the i-th element of each."""

    def __init__(self, *tensors: Tensor):
        lengths = [tensor.size(0) for tensor in tensors]
        if len(set(lengths)) > 1:
            raise AssertionError(f"Size mismatch between tensors: lengths {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ConcatDataset(Dataset[Sample]):
    """Datasets one after the other as one."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Sample:
        if index < 0:
            if -index > len(self):
                raise ValueProblem("absolute value of index should not exceed dataset length")
            index += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]


class StackDataset(Dataset[Sample]):
    """Datasets of one length side by side: a sample is a tuple of theirs, or by keyword a dict."""

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if args and kwargs:
            raise ValueProblem(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        self.datasets = args or kwargs
        if not self.datasets:
            raise ValueProblem("At least one dataset should be passed")
        lengths = {len(dataset) for dataset in self._parts()}
        if len(lengths) > 1:
            raise ValueProblem("Size mismatch between datasets")
        self._length = lengths.pop()

    def _parts(self) -> list[Dataset]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _joined(self, parts: Iterable):
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: int) -> Sample:
        return self._joined([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: list[int]) -> list:
        """Return several samples, with one call to each dataset that supports it."""
        columns = []
        for dataset in self._parts():
            several = getattr(dataset, "__getitems__", None)
            columns.append([dataset[index] for index in indices] if several is None else several(indices))
            if len(columns[-1]) != len(indices):
                raise ValueProblem(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(columns[-1])}"
                )
        return [self._joined(parts) for parts in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other as one."""

    def __init__(self, datasets: Iterable[IterableDataset]):
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset


class Subset(Dataset[Sample]):
    """Those samples of a dataset whose indices are given."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Sample:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Sample]:
        """Return several samples, in one call where the dataset can."""
        chosen = [self.indices[i] for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        return fetch(chosen) if callable(fetch) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[int | float], generator=None) -> list[Subset]:
    """Split a dataset at random into parts that do not overlap.

    Args:
        lengths: how many samples each part gets; or fractions that sum to 1, where what is left over after rounding
            down goes to the first parts, one each.
        generator: where the random order comes from.

    Raises:
        ValueError: the lengths do not sum to the dataset's, or a fraction is not between 0 and 1.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_fractions(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueProblem(
            "Sum of input lengths does not equal the length of the input dataset! They sum to "
            f"{sum(lengths)}, and there are {len(dataset)} samples"
        )
    order = randperm(sum(lengths), generator=generator).tolist()
    return [Subset(dataset, order[end - length : end]) for end, length in zip(accumulate(lengths), lengths)]


def _from_fractions(fractions: Sequence[float], count: int) -> list[int]:
    for place, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueProblem(f"Fraction at index {place} is not between 0 and 1, but {fraction}")
    lengths = [math.floor(count * fraction) for fraction in fractions]
    for extra in range(count - sum(lengths)):
        lengths[extra % len(lengths)] += 1
    for place, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {place} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return lengths
