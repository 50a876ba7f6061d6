"""No way of failing or dying in a worker leaves the loader waiting, and no worker outlives its program."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loading import SIDES, Gate, Samples, assert_gone

import backlight
from backlight import data
from backlight.data import worker_pool
from backlight.errors import GraphError

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # of two workers, on one processor


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
    pids = [worker.process.pid for worker in batches._pool._workers]
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
    gate = Gate()
    batches = iter(data.DataLoader(Samples(3, gate.before(1)), None, num_workers=1, timeout=0.2))
    found = []
    while len(found) < 3:
        try:
            found.append(next(batches))
        except RuntimeError as late:
            assert str(late) == "DataLoader timed out after 0.2 seconds"
            gate.open()
    assert found == [0, 1, 2]
    assert gate.opened


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
        said.append([(str(warning.message), warning.filename if d is data else __file__) for warning in caught])
    assert said[0] == said[1]


SCRIPT = """
import os, signal, sys, time
from backlight import data

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores Ctrl-C

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
    deadline = time.monotonic() + worker_pool.SHUTDOWN_TIMEOUT
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_gone_soon(pids):
    for child in multiprocessing.active_children():
        child.join(20)
    assert_gone(pids)


class Interrupted:
    """A method that raises KeyboardInterrupt in its second call: before it does its work, or after."""

    def __init__(self, method, before: bool):
        self.method, self.before, self.calls, self.pids = method, before, 0, []

    def __get__(self, worker, owner=None):
        return lambda *args: self.call(worker, *args)

    def call(self, worker, *args):
        self.calls += 1
        if self.calls == 2 and self.before:
            raise KeyboardInterrupt
        self.method(worker, *args)
        self.pids.append(worker.process.pid)
        if self.calls == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("before", [True, False])
def test_no_worker_stays_when_starting_them_is_interrupted(before, monkeypatch):
    start = Interrupted(worker_pool.Worker.start, before)
    monkeypatch.setattr(worker_pool.Worker, "start", start)
    with pytest.raises(KeyboardInterrupt):
        iter(data.DataLoader(Samples(4, int), None, num_workers=3))
    assert len(start.pids) == 2 - before
    assert_gone_soon(start.pids)


@pytest.mark.parametrize("before", [True, False])
def test_no_worker_stays_when_dismissing_them_is_interrupted(before, monkeypatch):
    batches = iter(data.DataLoader(Samples(8, int), None, num_workers=3))
    pids = [worker.process.pid for worker in batches._pool._workers]
    monkeypatch.setattr(worker_pool.Worker, "stop", Interrupted(worker_pool.Worker.stop, before))
    with pytest.raises(KeyboardInterrupt):
        batches._pool.shutdown()
    assert_gone_soon(pids)
