"""Samplers: in which order the samples of a dataset are taken."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import cycle, islice
from typing import Generic, TypeVar

import numpy as np

from backlight.distributed.groups import get_rank, get_world_size
from backlight.dtypes import float64
from backlight.engine.tensor_state import wrap
from backlight.errors import ArgumentError, MissingMethodError, ValueProblem
from backlight.tensor.creation import as_tensor
from backlight.tensor.generators import Generator
from backlight.tensor.random_factories import multinomial, randint, randperm

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

Rng = Generator | None
Index = TypeVar("Index", covariant=True)


class Sampler(Generic[Index]):
    """Yields indices: a subclass writes `__iter__`, and `__len__` where the number is known."""

    def __init__(self, data_source: Sized | None = None):
        """Take the dataset, which this class does not look at."""

    def __iter__(self) -> Iterator[Index]:
        """Yield the indices.

        Raises:
            NotImplementedError: the subclass has no `__iter__`.
        """
        raise MissingMethodError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random: all of them in a new order, or, with replacement, drawn one by one.

    Args:
        num_samples: how many; by default as many as there are.
        generator: where the order comes from; by default a new one, seeded by the global generator.

    Raises:
        ValueError: there is nothing to sample.
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Rng = None
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise ArgumentError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueProblem(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices there will be."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, left = len(self.data_source), self.num_samples
        generator = Generator().manual_seed(drawn_seed()) if self.generator is None else self.generator
        if self.replacement:
            for _ in range(left // 32):
                yield from randint(0, count, (32,), generator=generator).tolist()
            yield from randint(0, count, (left % 32,), generator=generator).tolist()
        else:
            for _ in range(left // count):
                yield from randperm(count, generator=generator).tolist()
            yield from randperm(count, generator=generator).tolist()[: left % count]

    def __len__(self) -> int:
        return self.num_samples


def drawn_seed(generator: Rng = None) -> int:
    """Return a seed drawn from a generator, by default the global one."""
    return wrap(np.zeros((), np.int64)).random_(generator=generator).item()


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Rng = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to their weights.

    Raises:
        ValueError: `weights` is no list of numbers, or `num_samples` is not positive.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Rng = None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueProblem(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueProblem(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueProblem(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last may be shorter, or is dropped.

    Raises:
        ValueError: `batch_size` is not positive, or `drop_last` no bool.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueProblem(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueProblem(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + bool(rest and not self.drop_last)


class DistributedSampler(Sampler[int]):
    """The part of a dataset's indices that one of several processes takes; all of them together take all.

    Args:
        num_replicas: how many processes there are; by default those of the process group.
        rank: which of them this is; by default as in the process group.
        shuffle: take the indices in an order at random, the same in all processes: see `set_epoch`.
        seed: of that order.
        drop_last: leave out the last indices where they cannot be divided, rather than take the first ones again.

    Raises:
        ValueError: the number of processes or the rank is missing, and there is no process group; or the rank is not
            among them.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueProblem(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else -(-count // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Let the next order at random be that of an epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            indices = randperm(len(indices), generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        repeated = islice(cycle(indices), self.total_size)
        return iter(list(repeated)[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
