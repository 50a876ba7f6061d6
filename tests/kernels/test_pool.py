"""The kernels' threads: results do not depend on them, forked children have their own, Python threads do not wait."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import backlight
import backlight.nn.functional as F
from backlight.kernels.native import compiled

native = pytest.mark.skipif(compiled is None, reason="native kernels are not in use")


def work() -> np.ndarray:
    """Return what a little of everything gives: a product, an activation, a norm, a softmax, and their gradients."""
    rng = np.random.default_rng(0)
    x = backlight.tensor(rng.normal(size=(256, 512)).astype(np.float32), requires_grad=True)
    weight = backlight.tensor(rng.normal(size=(512, 512)).astype(np.float32), requires_grad=True)
    scale = backlight.ones(512, requires_grad=True)
    y = F.softmax(F.layer_norm(F.gelu(F.linear(x, weight)), (512,), scale), -1)
    (y * y).sum().backward()
    return np.concatenate([x.grad.numpy().ravel(), weight.grad.numpy().ravel(), scale.grad.numpy()])


@pytest.fixture
def threads():
    before = backlight.get_num_threads()
    yield backlight.set_num_threads
    backlight.set_num_threads(before)


@native
def test_results_are_the_same_bits_on_any_number_of_threads(threads):
    threads(1)
    expected = work()
    for count in (2, 3, 7):
        threads(count)
        assert np.array_equal(work(), expected)


def in_child(queue):
    queue.put(work())


def test_a_forked_child_computes_after_its_parent_used_threads(threads):
    threads(2)
    expected = work()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    found = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(work(), expected)


def test_python_threads_compute_side_by_side(threads):
    threads(2)
    expected, found = work(), [None] * 6

    def compute(place):
        for _ in range(5):
            found[place] = work()

    running = [threading.Thread(target=compute, args=(place,)) for place in range(len(found))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


@native  # NumPy's BLAS does not promise it
def test_a_child_that_is_forked_while_threads_compute_does_not_hang(threads):
    threads(2)
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            work()

    busy = threading.Thread(target=compute)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                F.gelu(backlight.ones(512, 512))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


def test_it_works_where_nothing_can_be_written(tmp_path):
    program = (
        "import backlight as b; x = b.ones(600, 600, requires_grad=True); b.nn.functional.gelu(x).sum().backward()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("names", "engine", "kernels"),
    [
        ({"BACKLIGHT_KERNELS": "numpy"}, "Python", "NumPy (BACKLIGHT_KERNELS=numpy)"),
        ({"BACKLIGHT_CORE": "python"}, "Python", None),
    ],
)
def test_info_says_what_was_switched_off(names, engine, kernels):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **names}
    program = "import sys; from backlight.cli.main import main; sys.exit(main(['info']))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    said = dict(line.split(None, 1) for line in done.stdout.splitlines())
    assert said["engine"] == engine and (kernels is None or said["kernels"] == kernels)
