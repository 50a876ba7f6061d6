"""Worker processes give what PyTorch's give, from equal seeds, and no way of dying leaves the loader waiting."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.utils.data

import backlight
from backlight import data
from backlight.data import crew, parcels
from backlight.errors import GraphError

SIDES = ((backlight, data), (torch, torch.utils.data))
Point = namedtuple("Point", ["x", "y"])


def plain(value):
    """Return a value with its tensors as lists, so that both sides can be compared; dtypes stay visible."""
    if isinstance(value, (backlight.Tensor, torch.Tensor)):
        return (str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        made = [plain(entry) for entry in value]
        return made if type(value) is list else (type(value).__name__, made)
    return value


def both(function) -> list:
    """Return what a function of (module, its data module) gives on either side, from equal seeds."""
    found = []
    for t, d in SIDES:
        t.manual_seed(13)
        found.append(plain(function(t, d)))
    return found


def assert_gone(pids):
    """The processes have been waited for: not even zombies are left."""
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class Samples:
    """`count` samples, each made by a function of its index."""

    def __init__(self, count, make):
        self.count = count
        self.make = make

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.make(index)


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


class Odd(ValueError):
    """An exception that no message makes."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Spoken(Exception):
    """An exception that takes its message by name, and shows that it has one."""

    message = "here"

    def __init__(self, *, message):
        super().__init__(message)
        self.message = message


def failing(problem):
    def make(index):
        if index == 2:
            raise problem
        return index

    return make


PROBLEMS = [ValueError("bad sample"), KeyError("name"), Odd(1, 2), Spoken(message="no"), StopIteration()]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_a_workers_exception_is_raised_as_it_was_and_the_next_batch_comes_after_it(problem):
    caught = []
    for _, d in SIDES:
        batches = iter(d.DataLoader(Samples(6, failing(problem)), None, num_workers=2))
        assert [next(batches), next(batches)] == [0, 1]
        with pytest.raises(type(problem) if not isinstance(problem, Odd) else RuntimeError) as raised:
            next(batches)
        caught.append(raised.value)
        assert list(batches) == [3, 4, 5]
    ours, theirs = caught
    begin = (
        f"Caught {type(problem).__name__} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):"
    )
    for error in (ours, theirs):
        assert str(error).startswith(begin)
        assert "in make" in str(error)
    assert isinstance(ours, RuntimeError) == isinstance(theirs, RuntimeError)


def test_errors_of_backlight_come_with_their_class():
    with pytest.raises(GraphError, match="Caught GraphError in DataLoader worker process 0"):
        list(data.DataLoader(Samples(2, lambda index: backlight.ones(1).backward()), num_workers=1))


def test_an_exception_whose_class_cannot_travel_comes_as_its_base():
    class Local(ZeroDivisionError):
        pass

    with pytest.raises(ZeroDivisionError, match="Caught Local in DataLoader worker process 0"):
        list(data.DataLoader(Samples(4, failing(Local("here"))), num_workers=1))


def test_what_cannot_travel_is_an_error_and_no_wait():
    with pytest.raises((AttributeError, TypeError, RuntimeError), match="Caught"):
        list(data.DataLoader(Samples(2, lambda index: lambda: index), None, num_workers=1))
    weight = backlight.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(data.DataLoader(Samples(2, lambda index: 2 * weight), None, num_workers=1))


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


def killed(index):
    os.kill(os.getpid(), signal.SIGKILL)


def left(index):
    os._exit(3)


@pytest.mark.parametrize(("end", "said"), [(killed, "was killed by SIGKILL"), (left, "ended with exit code 3")])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_dead_worker_is_an_error_and_no_wait(end, said, persistent):
    dying = Samples(8, lambda index: end(index) if index == 3 else index)
    loader = data.DataLoader(dying, None, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    pids = [worker.process.pid for worker in batches._crew._workers]
    with pytest.raises(
        RuntimeError, match=rf"DataLoader worker \(pid\(s\) {pids[1]}\) exited unexpectedly: it .*{said}"
    ):
        list(batches)
    assert list(batches) == []
    assert_gone(pids)
    assert next(iter(loader)) == 0  # by new workers


def test_a_worker_killed_while_the_main_process_waits_is_noticed():
    def make(index):
        if index:
            signal.pause()
        return os.getpid()

    batches = iter(data.DataLoader(Samples(4, make), None, num_workers=1, prefetch_factor=1))
    worker = next(batches)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"pid.s. {worker}"):
        next(batches)


def test_a_late_batch_is_a_timeout_and_comes_later():
    def make(index):
        time.sleep(0.3 * (index == 1))
        return index

    batches = iter(data.DataLoader(Samples(3, make), None, num_workers=1, timeout=0.1))
    assert next(batches) == 0
    with pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0\.1 seconds$"):
        next(batches)
    found = []
    while len(found) < 2:
        try:
            found.append(next(batches))
        except RuntimeError:
            continue
    assert found == [1, 2]


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
    def make(index):
        time.sleep(0.3 * (index == 0))
        return index

    loader = data.DataLoader(Samples(8, make), None, num_workers=2, prefetch_factor=1, in_order=False)
    assert list(loader) == [1, 2, 3, 4, 5, 6, 7, 0]


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
    monkeypatch.setattr(parcels, "FILES", files)
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
    pids = [worker.process.pid for worker in batches._crew._workers]
    assert plain(list(batches)) == plain(list(data.DataLoader(samples, 4)))
    assert_gone(pids)


def test_what_cannot_be_sent_to_a_new_process_is_named():
    parts = {"dataset": Samples(4, lambda index: index), "collate_fn": lambda batch: batch}
    parts["worker_init_fn"] = lambda number: None
    for name, part in parts.items():
        options = {"dataset": range(4), "num_workers": 1, "multiprocessing_context": "spawn", name: part}
        with pytest.raises(Exception, match=f"lambda.*: {name} cannot be sent to a worker process") as caught:
            list(data.DataLoader(**options))
        assert type(caught.value).__name__ in ("PicklingError", "AttributeError")


MISTAKES = {
    "context without workers": lambda t, d: d.DataLoader(range(3), multiprocessing_context="fork"),
    "no such context": lambda t, d: d.DataLoader(range(3), num_workers=1, multiprocessing_context="thread"),
    "no context": lambda t, d: d.DataLoader(range(3), num_workers=1, multiprocessing_context=3),
    "negative prefetch": lambda t, d: d.DataLoader(range(3), num_workers=1, prefetch_factor=-1),
    "new batch size": lambda t, d: setattr(d.DataLoader(range(3)), "batch_size", 2),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_have_pytorchs_words(mistake):
    said = []
    for t, d in SIDES:
        with pytest.raises((ValueError, TypeError)) as caught:
            MISTAKES[mistake](t, d)
        said.append(caught.value)
    ours, theirs = said
    assert isinstance(ours, type(theirs))
    assert str(ours).startswith(str(theirs))


def test_workers_without_tasks_are_refused():
    loader = data.DataLoader(range(3), num_workers=1, prefetch_factor=0)
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(loader)


def test_more_workers_than_processors_are_warned_of_in_pytorchs_words():
    said = []
    for _, d in SIDES:
        with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes") as caught:
            d.DataLoader(range(3), num_workers=1000)
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


SCRIPT = """
import os, signal, sys, time
from backlight import data

class Pids:
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return os.getpid()

def run(persistent):
    loader = data.DataLoader(Pids(), None, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    print(next(batches), next(batches), flush=True)
    return loader, batches

kept = run(True), run(False)
{end}
"""
ENDS = {
    "at the end of the script": ("pass", 0),
    "after an exception": ("raise SystemExit(4)", 4),
    "by Ctrl-C": ("os.kill(0, signal.SIGINT); time.sleep(9)", -signal.SIGINT),
    "by SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
def test_no_worker_outlives_the_program_that_ends(end):
    code, expected = ENDS[end]
    source = SCRIPT.replace("{end}", code)
    environment = {**os.environ, "PYTHONPATH": str(Path(backlight.__file__).parent.parent)}
    program = [sys.executable, "-W", "error", "-c", source]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, start_new_session=True, timeout=60, check=False
    )
    assert done.returncode == expected
    assert "leak" not in done.stderr
    assert "Warning" not in done.stderr
    assert done.stderr == "" or end == "by Ctrl-C"
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 4
    deadline = time.monotonic() + crew.PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)
