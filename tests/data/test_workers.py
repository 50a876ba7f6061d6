"""Worker processes give what PyTorch's give, from equal seeds."""

import os
import random
from collections import namedtuple

import numpy as np
import pytest
from loading import SIDES, Gate, Samples, assert_gone, both, plain

import backlight
from backlight import data
from backlight.data import ipc

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # of two workers, on one processor

Point = namedtuple("Point", ["x", "y"])


def doubled(index):
    return 2 * index


def pid(index):
    return os.getpid()


def rows(t, d):
    return d.TensorDataset(t.arange(10.0), t.arange(20).reshape(10, 2))


LOADERS = {
    "in order": {"batch_size": 3},
    "shuffled": {"batch_size": 3, "shuffle": True},
    "last dropped": {"batch_size": 3, "drop_last": True},
    "single samples": {"batch_size": None},
    "own batches": {"batch_sampler": [[1, 2], [5]]},
    "no batches": {"batch_sampler": []},
}


@pytest.mark.parametrize("name", LOADERS)
def test_workers_give_the_batches_that_the_main_process_gives(name):
    found = []
    for workers in ({}, {"num_workers": 2, "prefetch_factor": 50}, {"num_workers": 2}):
        backlight.manual_seed(4)
        loader = data.DataLoader(rows(backlight, data), **LOADERS[name], **workers)
        found.append(plain([list(loader), list(loader), backlight.rand(1), len(loader)]))
    assert found[0] == found[1] == found[2]


def drawn(t):
    def make(index):
        return index, t.rand(2), t.randn(()), random.random(), np.random.rand()

    return make


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"prefetch_factor": 1}])
def test_random_numbers_in_workers_are_pytorchs(options):
    def epochs(t, d):
        loader = d.DataLoader(Samples(10, drawn(t)), 2, shuffle=True, num_workers=2, **options)
        return [list(loader), list(loader), t.rand(1)]

    ours, theirs = both(epochs)
    assert ours == theirs


def test_a_loaders_generator_seeds_its_workers():
    def epochs(t, d):
        loader = d.DataLoader(Samples(4, drawn(t)), 2, num_workers=1, generator=t.Generator().manual_seed(5))
        return list(loader)

    ours, theirs = both(epochs)
    assert ours == theirs


def about_the_worker(d):
    def make(index):
        info = d.get_worker_info()
        return [info.id, info.num_workers, info.seed, len(info.dataset), info.worker_method, str(info.rng)]

    return make


def test_a_worker_knows_what_pytorchs_knows():
    ours, theirs = both(lambda t, d: list(d.DataLoader(Samples(4, about_the_worker(d)), None, num_workers=2)))
    assert ours == theirs
    assert data.get_worker_info() is None


class Counting:
    """Yields numbers; each worker a share of them, if asked."""

    def __init__(self, count, d, shared):
        self.count = count
        self.d = d
        self.shared = shared

    def __iter__(self):
        info = self.d.get_worker_info()
        step = info.num_workers if self.shared and info else 1
        return iter(range(info.id if step > 1 else 0, self.count, step))


STREAMS = [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"persistent_workers": True}]


@pytest.mark.parametrize("options", STREAMS)
@pytest.mark.parametrize("shared", [True, False])
def test_each_worker_iterates_over_its_copy_of_a_stream(options, shared):
    def epochs(t, d):
        stream = type("Stream", (Counting, d.IterableDataset), {})
        loader = d.DataLoader(stream(11, d, shared), num_workers=2, **options)
        return [list(loader), list(loader)]

    ours, theirs = both(epochs)
    assert ours == theirs


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_longer_than_it_says_is_warned_of_in_pytorchs_words(workers):
    said = []
    for _, d in SIDES:
        members = {"__len__": lambda stream: 3, "__repr__": lambda stream: "Stream"}
        stream = type("Stream", (Counting, d.IterableDataset), members)(2 * workers + 4, d, False)
        loader = d.DataLoader(stream, None, num_workers=workers)
        assert len(loader) == 3
        with pytest.warns(UserWarning, match="Length of IterableDataset") as caught:
            list(loader)
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


def test_worker_init_fn_is_called_with_the_number_after_seeding():
    def epochs(t, d):
        loader = d.DataLoader(Samples(4, drawn(t)), 1, num_workers=2, worker_init_fn=lambda number: t.rand(number + 1))
        return list(loader)

    ours, theirs = both(epochs)
    assert ours == theirs

    def fail(number):
        raise LookupError(f"worker {number}")

    with pytest.raises(LookupError, match="worker 0"):
        list(data.DataLoader(range(3), num_workers=1, worker_init_fn=fail))


def test_persistent_workers_stay_over_epochs_and_go_with_the_loader():
    loader = data.DataLoader(Samples(6, pid), None, num_workers=2, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert first == second
    assert len(set(first)) == 2
    next(iter(loader))  # an epoch that is given up
    assert list(loader) == first
    del loader
    assert_gone(set(first))


def test_an_epoch_given_up_leaves_no_batch_to_the_next():
    loader = data.DataLoader(Samples(20, doubled), None, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    assert [next(batches), next(batches)] == [0, 2]
    assert list(loader) == [doubled(index) for index in range(20)]


def test_workers_that_do_not_persist_go_at_the_end_of_the_epoch():
    batches = iter(data.DataLoader(Samples(6, pid), None, num_workers=2))
    assert_gone(set(batches))


def test_an_iterator_dropped_half_way_takes_its_workers_with_it():
    batches = iter(data.DataLoader(Samples(1000, pid), None, num_workers=2))
    pids = {next(batches), next(batches)}
    del batches
    assert_gone(pids)


def test_so_many_tasks_are_out_as_prefetch_factor_says():
    asked = []

    def indices():
        for index in range(20):
            asked.append(index)
            yield index

    batches = iter(data.DataLoader(range(20), None, sampler=indices(), num_workers=2, prefetch_factor=3))
    assert len(asked) == 2 * 3
    next(batches)
    assert len(asked) == 2 * 3 + 1


def test_batches_out_of_order_come_as_they_are_ready():
    gate = Gate()
    loader = data.DataLoader(Samples(8, gate.before(0)), None, num_workers=2, prefetch_factor=1, in_order=False)
    found = []
    for index in loader:
        found.append(index)
        if len(found) == 7:
            gate.open()
    assert found == [1, 2, 3, 4, 5, 6, 7, 0]


def nested(t):
    def make(index):
        return {
            "image": t.full((3, 40, 40), float(index)),
            "many": [t.arange(4) + index, (np.float32(index), "text")],
            "point": Point(index, np.ones((2, 2000)) * index),
            "half": t.ones(3000).bfloat16() * index,
            "none": t.zeros(0, 2),
        }

    return make


def test_nested_batches_arrive_as_they_are():
    ours, theirs = both(lambda t, d: list(d.DataLoader(Samples(5, nested(t)), 2, num_workers=2)))
    assert ours == theirs


@pytest.mark.parametrize("files", [True, False])
def test_arrays_that_arrive_are_writable_and_alone(files, monkeypatch):
    monkeypatch.setattr(ipc, "HAS_MEMFD", files)
    samples = Samples(3, lambda index: [backlight.full((size,), float(index)) for size in (2, 3000, 200_000)])
    for index, batch in enumerate(data.DataLoader(samples, None, num_workers=1)):
        for tensor in batch:
            tensor += 1
            assert (tensor == index + 1).all()


def test_long_lists_of_indices_and_long_texts_arrive():
    count = 50_000
    (batch,) = data.DataLoader(Samples(count, doubled), count, num_workers=1)
    assert batch.sum().item() == count * (count - 1)
    (text,) = data.DataLoader(["long " * 20_000], None, num_workers=1)
    assert text == "long " * 20_000


def test_descriptors_are_closed():
    def count():
        return len(os.listdir("/proc/self/fd"))

    loader = data.DataLoader(Samples(8, lambda index: backlight.zeros(20_000)), 2, num_workers=2)
    list(loader)
    before = count()
    kept = list(loader)
    assert len(kept) == 4
    assert count() == before


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_may_be_started_anew(method):
    samples = rows(backlight, data)  # what this file defines would have the new process import PyTorch
    batches = iter(data.DataLoader(samples, 4, num_workers=1, multiprocessing_context=method))
    pids = [worker.process.pid for worker in batches._pool._workers]
    assert plain(list(batches)) == plain(list(data.DataLoader(samples, 4)))
    assert_gone(pids)
