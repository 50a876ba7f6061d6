"""Loaders give PyTorch's batches in PyTorch's order, for equal seeds, and refuse options that contradict each other."""

from collections import namedtuple

import numpy as np
import pytest
from loading import SIDES, both, plain

import backlight
from backlight import data

Point = namedtuple("Point", ["x", "y"])


def rows(t, d):
    return d.TensorDataset(t.arange(10.0), t.arange(20).reshape(10, 2))


LOADERS = {
    "in order": lambda t, d: d.DataLoader(rows(t, d), batch_size=4),
    "shuffled": lambda t, d: d.DataLoader(rows(t, d), batch_size=4, shuffle=True),
    "own generator": lambda t, d: d.DataLoader(
        rows(t, d), batch_size=4, shuffle=True, generator=t.Generator().manual_seed(5)
    ),
    "last dropped": lambda t, d: d.DataLoader(rows(t, d), batch_size=4, drop_last=True),
    "single samples": lambda t, d: d.DataLoader(rows(t, d), batch_size=None),
    "own sampler": lambda t, d: d.DataLoader(rows(t, d), 3, sampler=d.SubsetRandomSampler([7, 1, 4, 2])),
    "weighted": lambda t, d: d.DataLoader(rows(t, d), 3, sampler=d.WeightedRandomSampler([0.1] * 5 + [0.9] * 5, 6)),
    "with replacement": lambda t, d: d.DataLoader(
        rows(t, d), 16, sampler=d.RandomSampler(rows(t, d), replacement=True, num_samples=40)
    ),
    "more than there are": lambda t, d: d.DataLoader(rows(t, d), 8, sampler=d.RandomSampler(range(10), num_samples=25)),
    "own batches": lambda t, d: d.DataLoader(rows(t, d), batch_sampler=[[1, 2], [5]]),
    "own collate": lambda t, d: d.DataLoader(range(5), 2, collate_fn=lambda batch: sum(batch)),
    "a list of dicts": lambda t, d: d.DataLoader([{"a": i, "b": (0.5 * i, str(i))} for i in range(5)], 2),
    "a subset": lambda t, d: d.DataLoader(d.Subset(rows(t, d), [3, 5, 8]), 2),
    "two data sets": lambda t, d: d.DataLoader(rows(t, d) + rows(t, d), 6, shuffle=True),
}


@pytest.mark.parametrize("name", LOADERS)
def test_loader_gives_pytorchs_batches_twice_over(name):
    def epochs(t, d):
        loader = LOADERS[name](t, d)
        return [list(loader), list(loader), t.rand(1).tolist(), len(loader)]

    ours, theirs = both(epochs)
    assert ours == theirs


def test_workers_change_nothing_that_a_script_sees():
    samples = rows(backlight, data)
    alone, helped = (list(data.DataLoader(samples, 4, num_workers=count)) for count in (0, 2))
    assert plain(alone) == plain(helped)


class Counting:
    """Yields numbers, for either side's IterableDataset."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_iterable_data_comes_in_batches(options):
    def batches(t, d):
        stream = type("Stream", (Counting, d.IterableDataset), {})
        return [list(d.DataLoader(stream(7), **options)), list(d.DataLoader(stream(2) + stream(3), **options))]

    ours, theirs = both(batches)
    assert ours == theirs


@pytest.mark.parametrize("lengths", [[6, 4], [0.5, 0.25, 0.25], [0.33, 0.33, 0.34]])
def test_random_split_gives_pytorchs_parts(lengths):
    ours, theirs = both(
        lambda t, d: [list(part) for part in d.random_split(range(10), lengths, t.Generator().manual_seed(2))]
    )
    assert ours == theirs


SAMPLES = {
    "numbers": [1, 2],
    "floats": [1.5, 2.0],
    "flags": [True, False],
    "texts": ["a", "b"],
    "arrays": [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "array numbers": [np.float32(1), np.float32(2)],
    "dicts": [{"a": 1, "b": [1.0, 2.0]}, {"a": 2, "b": [3.0, 4.0]}],
    "named tuples": [Point(1, 2.0), Point(3, 4.0)],
    "tuples": [(1, "x"), (2, "y")],
    "nested lists": [[[1, 2], 3], [[4, 5], 6]],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_collate_and_convert_give_what_pytorchs_do(name):
    ours, theirs = both(lambda t, d: [d.default_collate(SAMPLES[name]), d.default_convert(SAMPLES[name])])
    assert ours == theirs


def test_tensors_are_stacked_and_keep_their_history():
    parts = [backlight.ones(2, requires_grad=True) for _ in range(3)]
    batch = data.default_collate(parts)
    assert batch.shape == (3, 2)
    assert batch.requires_grad


MISTAKES = {
    "sizes differ": lambda t, d: d.TensorDataset(t.ones(2), t.ones(3)),
    "shuffle and sampler": lambda t, d: d.DataLoader(rows(t, d), shuffle=True, sampler=[1]),
    "batch size and batches": lambda t, d: d.DataLoader(rows(t, d), 2, batch_sampler=[[1]]),
    "no batches to drop": lambda t, d: d.DataLoader(rows(t, d), None, drop_last=True),
    "batch size 0": lambda t, d: d.DataLoader(rows(t, d), 0),
    "batch size no int": lambda t, d: d.BatchSampler(range(3), 1.5, False),
    "drop_last no bool": lambda t, d: d.BatchSampler(range(3), 1, 1),
    "negative workers": lambda t, d: d.DataLoader(rows(t, d), num_workers=-1),
    "negative timeout": lambda t, d: d.DataLoader(rows(t, d), timeout=-1),
    "prefetch alone": lambda t, d: d.DataLoader(rows(t, d), prefetch_factor=2),
    "persistent alone": lambda t, d: d.DataLoader(rows(t, d), persistent_workers=True),
    "nothing to shuffle": lambda t, d: d.DataLoader([], shuffle=True),
    "replacement no bool": lambda t, d: d.RandomSampler(range(3), replacement=1),
    "weights of two dims": lambda t, d: d.WeightedRandomSampler([[1.0]], 1),
    "no samples to draw": lambda t, d: d.WeightedRandomSampler([1.0], 0),
    "lengths do not sum up": lambda t, d: d.random_split(range(10), [3, 3]),
    "fraction negative": lambda t, d: d.random_split(range(10), [1.5, -0.5]),
    "no data sets": lambda t, d: d.ConcatDataset([]),
    "index beyond": lambda t, d: d.ConcatDataset([rows(t, d)])[-11],
    "collating objects": lambda t, d: d.default_collate([object()]),
    "collating ragged lists": lambda t, d: d.default_collate([[1], [1, 2]]),
    "collating text arrays": lambda t, d: d.default_collate([np.array(["a"])]),
    "stacking ragged tensors": lambda t, d: d.default_collate([t.ones(1), t.ones(2)]),
    "no __getitem__": lambda t, d: d.Dataset()[0],
    "shuffled stream": lambda t, d: d.DataLoader(type("S", (Counting, d.IterableDataset), {})(1), shuffle=True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    said = []
    for t, d in reversed(SIDES):
        with pytest.raises(Exception) as caught:
            MISTAKES[mistake](t, d)
        said.append(caught.value)
    theirs, ours = said
    assert isinstance(ours, next(kind for kind in type(theirs).__mro__ if kind.__module__ == "builtins"))
    assert str(ours).startswith(str(theirs).rstrip("!"))


def test_an_empty_part_and_unpinned_memory_warn():
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(2), [1.0, 0.0])
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(data.DataLoader(rows(backlight, data), pin_memory=True))
    assert data.get_worker_info() is None
