"""The memory of freed arrays is given out again, whole, and no more of it is held than was in use at once."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from backlight.kernels.native import compiled

pytestmark = [pytest.mark.skipif(compiled is None, reason="native kernels are not in use")] if compiled is None else []


def test_arrays_keep_their_contents_while_others_come_and_go():
    rng = np.random.default_rng(0)
    live = {}
    for number in range(3000):
        size = int(rng.choice([0, 1, 7, 63, 64, 65, 1000, 8191, 8192, 8200, 40_000, 300_000]))
        made = np.zeros(size) if number % 3 == 0 else np.empty(size)
        assert number % 3 or not made.any()
        made[...] = number
        live[number] = made
        if len(live) > 20:
            gone = int(rng.choice(list(live)))
            assert (live.pop(gone) == gone).all()
    assert all((array == number).all() for number, array in live.items())


def test_an_array_that_is_resized_keeps_its_beginning():
    for start in (0, 3, 1000, 4090, 5000, 100_000):
        for end in (1, 5, 4096, 5000, 70_000, 1_000_000):
            array = np.arange(float(start))
            array.resize(end, refcheck=False)
            common = min(start, end)
            assert (array[:common] == np.arange(float(common))).all() and not array[common:].any()
    assert np.fromiter((float(i) for i in range(100_000)), float).sum() == 4999950000.0


def test_memory_is_aligned_for_vectors():
    assert all(np.empty(size, np.float32).ctypes.data % 64 == 0 for size in (10_000, 123_457, 4_000_000))


def test_freed_memory_is_given_out_again_and_back():
    array = np.empty(3_000_000)
    place = array.ctypes.data
    del array
    again = np.empty(2_999_990)
    assert again.ctypes.data == place
    del again
    assert compiled.give_memory_back() >= 24_000_000
    assert compiled.give_memory_back() == 0


def test_arrays_may_be_freed_by_other_threads():
    arrays = [np.full(100_000, float(number)) for number in range(50)]

    def work():
        while True:
            try:
                array = arrays.pop()
            except IndexError:  # another thread took the last one
                return
            assert (array == array[0]).all()
            assert np.ones(100_000).sum() == 100_000

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_more_is_held_than_was_in_use_at_once():
    program = """
import numpy as np, backlight
def now():
    return int(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]) // 1024
for size in range(1_000_000, 9_000_000, 500_000):  # each size another kind
    array = np.ones(size)
    del array
print(now())
"""
    if not os.path.exists("/proc/self/status"):
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    held = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert int(held.stdout) < 72 + 80  # the largest array in MiB, and the interpreter with its libraries
