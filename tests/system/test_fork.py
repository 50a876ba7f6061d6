"""Forks beside threads that compute: no child hangs, what locks guard is complete in it, generators go on."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from paths import TESTS

import backlight
from backlight.engine.grad_mode import recording
from backlight.kernels.native import compiled
from backlight.kernels.random.generator import default_twister
from backlight.system import fork_safety
from backlight.system.fork_safety import fork_safe_lock, import_unforked, no_fork_elsewhere
from soak import forks

pytestmark = pytest.mark.filterwarnings("ignore:This process .*is multi-threaded, use of fork:DeprecationWarning")

START_METHODS = """
import multiprocessing, subprocess, sys
from concurrent.futures import ProcessPoolExecutor
import backlight
from soak import forks

def work(number):
    backlight.rand(100)
    leaf = backlight.ones(3, requires_grad=True)
    (leaf * float(number)).sum().backward()
    return leaf.grad.tolist()

def main():
    with forks.computing(forks.Training()):
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with context.Pool(2) as pool:
                assert pool.map(work, range(4)) == [[float(n)] * 3 for n in range(4)]
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(work, range(4))) == [[float(n)] * 3 for n in range(4)]
        for _ in range(3):
            command = [sys.executable, "-c", "print('started')"]
            assert subprocess.run(command, preexec_fn=lambda: work(1), capture_output=True).stdout == b"started\\n"

if __name__ == "__main__":
    main()
    print("all done")
"""
INVERSE_ORDER = """
import os, threading
from backlight.system import fork_safety
from backlight.system.fork_safety import fork_safe_lock

fork_safety.PATIENCE = 1e6
locks = [fork_safe_lock() for _ in range(3)]
ended = threading.Event()

def nest(locks):
    while not ended.is_set():
        with locks[0], locks[1], locks[2]:
            pass

def fork():
    for _ in range(10):
        child = os.fork()
        if not child:
            for lock in locks:
                lock.acquire()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

both = [threading.Thread(target=fork) for _ in range(2)]
busy = [threading.Thread(target=nest, args=([locks[2], locks[1], locks[0]],))]
for one in both + busy:
    one.start()
for one in both:
    one.join()
ended.set()
busy[0].join()
print("all done")
"""


def in_child(work) -> None:
    """Do something in a forked child; it must end, and not fail."""
    problem = forks.forked(work)
    assert not problem, problem


def held_elsewhere(locks):
    """Start a thread that takes locks; return the event that lets it release them, and the thread."""
    taken, go = threading.Event(), threading.Event()

    def hold():
        for lock in locks:
            lock.acquire()
        taken.set()
        go.wait()
        for lock in reversed(locks):
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    return go, thread


def output_of(program: str, tmp_path) -> str:
    path = tmp_path / "program.py"
    path.write_text(program)
    folders = [str(Path(backlight.__file__).parent.parent), str(TESTS)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout


def compute() -> None:
    """Draw numbers, build an op, accumulate, switch modes."""
    backlight.rand(3)
    leaf = backlight.ones(2, requires_grad=True)
    with backlight.no_grad():
        backlight.randperm(3)
    backlight.func.grad(lambda x: (x * x).sum())(backlight.ones(2))
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("variant", forks.VARIANTS)
def test_no_child_hangs_that_is_forked_while_other_threads_compute(variant):
    done, failures = forks.forks_of(variant, 15, seed=1)
    assert not failures, "\n".join(failures)
    assert done == 15


def test_every_way_to_start_processes_works_beside_threads_that_compute(tmp_path):
    assert output_of(START_METHODS, tmp_path) == "all done\n"


def test_locks_may_be_nested_in_any_order_while_two_threads_fork(tmp_path):
    assert output_of(INVERSE_ORDER, tmp_path) == "all done\n"


def test_what_a_lock_guards_is_complete_in_the_child():
    lock, halves, entered = fork_safe_lock(), [], threading.Event()

    def write():
        with lock:
            halves.append(1)
            entered.set()
            threading.Event().wait(0.1)  # a fork that did not wait would come now
            halves.append(2)

    writer = threading.Thread(target=write)
    writer.start()
    entered.wait()

    def child():
        assert halves == [1, 2]
        with lock:
            pass

    in_child(child)
    writer.join()


def test_a_fork_goes_on_where_the_owner_of_a_lock_waits_for_it(monkeypatch):
    monkeypatch.setattr(fork_safety, "PATIENCE", 0.1)
    go, thread = held_elsewhere([*fork_safety._all_locks(), fork_safety._forking])
    try:
        in_child(compute)
        assert not default_twister.lock._is_owned()
    finally:
        go.set()
        thread.join()
    compute()


def test_a_lock_that_may_be_held_for_long_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(fork_safety, "PATIENCE", 1e6)
    lock = fork_safe_lock(waited_for=False)
    go, thread = held_elsewhere([lock])
    try:
        in_child(lambda: lock.acquire())
    finally:
        go.set()
        thread.join()


def test_a_thread_may_fork_while_it_holds_locks_and_releases_them_in_both_processes():
    lock = fork_safe_lock()

    def child():
        assert lock._is_owned() and default_twister.lock._is_owned()
        default_twister.lock.release()
        lock.release()
        go, thread = held_elsewhere([lock, default_twister.lock])
        go.set()
        thread.join()

    with lock, default_twister.lock:
        in_child(child)
        assert lock._is_owned() and default_twister.lock._is_owned()
    go, thread = held_elsewhere([lock, default_twister.lock])
    go.set()
    thread.join()


def test_a_fork_waits_for_an_import_of_another_thread(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_slowly", raising=False)
    (tmp_path / "imported_slowly.py").write_text(
        "import builtins, threading\n"
        "builtins.begun.set()\n"
        "threading.Event().wait(0.1)  # a fork that did not wait would come now\n"
        "ANSWER = 42\n"
    )
    begun = threading.Event()
    monkeypatch.setattr("builtins.begun", begun, raising=False)
    importing = threading.Thread(target=import_unforked, args=("imported_slowly",))
    importing.start()
    begun.wait()

    def child():
        assert import_unforked("imported_slowly").ANSWER == 42

    in_child(child)
    importing.join()


def test_blocks_without_forks_do_not_wait_for_each_other():
    entered, go = threading.Event(), threading.Event()

    def block():
        with no_fork_elsewhere():
            entered.set()
            go.wait()

    thread = threading.Thread(target=block)
    thread.start()
    entered.wait()
    with no_fork_elsewhere():
        go.set()
        thread.join()


def test_a_child_draws_the_numbers_that_its_parent_would_have_drawn():
    reading, writing = os.pipe()
    generator = backlight.Generator().manual_seed(3)
    backlight.rand(5, generator=generator)

    def child():
        drawn = [*backlight.rand(4).tolist(), *backlight.randn(3, generator=generator).tolist()]
        os.write(writing, repr(drawn).encode())

    state = backlight.get_rng_state()
    in_child(child)
    backlight.set_rng_state(state)
    expected = [*backlight.rand(4).tolist(), *backlight.randn(3, generator=generator).tolist()]
    assert os.read(reading, 4000).decode() == repr(expected)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("mode", [backlight.no_grad, backlight.enable_grad, backlight.inference_mode])
def test_modes_of_other_threads_end_with_them_and_those_of_the_forking_thread_stay(mode):
    entered, go = threading.Event(), threading.Event()
    before = recording.switched_off  # not 0 after a test whose thread ended with recording off

    def elsewhere():
        with backlight.no_grad():
            entered.set()
            go.wait()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    entered.wait()

    def child():
        recorded = backlight.is_grad_enabled()
        assert recorded == (mode is backlight.enable_grad)
        assert recording.everywhere == recorded
        x = backlight.ones(2, requires_grad=True) if mode is not backlight.inference_mode else backlight.ones(2)
        assert (x * 2).requires_grad == recorded
        with backlight.enable_grad():
            assert recording.everywhere == (mode is not backlight.inference_mode)

    try:
        with mode():
            in_child(child)
    finally:
        go.set()
        thread.join()
    assert recording.switched_off == before


@pytest.mark.skipif(compiled is None or not os.path.isdir("/proc/self/task"), reason="counts the pool's threads")
def test_the_pool_starts_its_threads_anew_in_a_child():
    before = backlight.get_num_threads()
    backlight.set_num_threads(3)
    try:
        x = backlight.ones(1024, 512)
        expected = backlight.nn.functional.gelu(x).numpy()

        def child():
            alone = len(os.listdir("/proc/self/task"))
            assert np.array_equal(backlight.nn.functional.gelu(x).numpy(), expected)
            assert len(os.listdir("/proc/self/task")) == alone + 2

        in_child(child)
    finally:
        backlight.set_num_threads(before)


def test_a_value_that_is_kept_is_computed_without_a_lock():
    class Kept:
        @fork_safety.cached_property
        def value(self):
            """Return something new."""
            go, thread = None, threading.Thread(target=lambda: other.value) if self is not other else None
            if thread is not None:  # another object's value is computed meanwhile
                thread.start()
                thread.join(60)
                assert not thread.is_alive()
            return [go]

    other, one = Kept(), Kept()
    assert one.value is one.value
    assert Kept.value.__doc__ == "Return something new."
