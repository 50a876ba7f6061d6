"""Backward from several threads on shared leaves, nested in hooks and Functions, and grad modes in generators."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import backlight

THREADS = 8


def in_threads(work) -> None:
    """Run `work(number)` in eight threads that start together; raise what any of them raised."""
    barrier = threading.Barrier(THREADS)

    def started(number):
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(started, number) for number in range(THREADS)]:
            done.result()


@pytest.mark.parametrize("size", [3, 1 << 18])  # NumPy lets other threads run while it copies large arrays
@pytest.mark.parametrize("hooked", [False, True])
def test_no_gradient_is_lost_between_threads(size, hooked):
    for _ in range(5):
        leaf = backlight.ones(size, dtype=backlight.float64, requires_grad=True)
        if hooked:
            leaf.register_hook(lambda grad: grad * 1)

        def work(number, leaf=leaf):
            for _ in range(10):
                (leaf * float(number + 1)).sum().backward()

        in_threads(work)
        assert (leaf.grad == 10.0 * sum(range(1, THREADS + 1))).all()


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_the_first_gradient_is_not_lost_when_another_thread_brings_one_too(size):
    for _ in range(10):
        leaf = backlight.ones(size, dtype=backlight.float64, requires_grad=True)
        in_threads(lambda number, leaf=leaf: leaf.sum().backward())  # its gradient is copied, not stolen
        assert (leaf.grad == float(THREADS)).all()


def test_one_graph_may_run_in_many_threads_when_it_is_retained():
    leaf = backlight.ones(100, dtype=backlight.float64, requires_grad=True)
    loss = (leaf.exp() * leaf).sum()
    in_threads(lambda number: [loss.backward(retain_graph=True) for _ in range(10)])
    once = backlight.autograd.grad(loss, [leaf])[0]
    assert backlight.allclose(leaf.grad, once * 10.0 * THREADS, rtol=1e-12)


def test_grad_modes_belong_to_their_thread():
    def work(number):
        leaf = backlight.ones(2, requires_grad=True)
        for _ in range(50):
            with backlight.set_grad_enabled(number % 2 == 0):
                assert (leaf * 2).requires_grad == (number % 2 == 0)
            assert (leaf * 2).requires_grad

    in_threads(work)


def test_hooks_registered_by_other_threads_are_called():
    leaf = backlight.ones(2, requires_grad=True)
    y = leaf * 2
    seen = []
    in_threads(lambda number: (leaf if number % 2 else y).register_hook(lambda grad: seen.append(number)))
    y.sum().backward()
    assert sorted(seen) == list(range(THREADS))


@pytest.mark.parametrize("t", [torch, backlight], ids=["torch", "backlight"])
def test_what_a_nested_backward_raises_comes_out_and_leaves_the_modes_as_they_were(t):
    def fail(grad):
        t.ones(2, requires_grad=True).backward()

    y = t.ones(2, requires_grad=True) * 2
    y.register_hook(fail)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        y.sum().backward()
    assert t.is_grad_enabled()
    assert (y * 2).requires_grad


@pytest.mark.parametrize("t", [torch, backlight], ids=["torch", "backlight"])
def test_a_nested_backward_through_the_same_leaf_adds_to_its_gradient(t):
    leaf = t.ones(2, dtype=t.float64, requires_grad=True)
    y = leaf * 2

    def also(grad):
        with t.enable_grad():
            (leaf * 5).sum().backward()

    y.register_hook(also)
    y.sum().backward()
    assert leaf.grad.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("t", [torch, backlight], ids=["torch", "backlight"])
def test_generators_keep_their_mode_through_send_throw_and_close(t):
    seen = []

    @t.no_grad()
    def generator():
        seen.append(("start", t.is_grad_enabled()))
        try:
            got = yield 1
            seen.append(("sent", got, t.is_grad_enabled()))
            with t.enable_grad():
                seen.append(("inside", t.is_grad_enabled()))
            try:
                yield 2
            except KeyError:
                seen.append(("thrown", t.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("closed", t.is_grad_enabled()))

    run = generator()
    assert next(run) == 1 and t.is_grad_enabled()
    assert run.send("x") == 2 and t.is_grad_enabled()
    assert run.throw(KeyError()) == 3 and t.is_grad_enabled()
    run.close()
    assert t.is_grad_enabled()
    assert seen == [
        ("start", False),
        ("sent", "x", False),
        ("inside", True),
        ("thrown", False),
        ("closed", False),
    ]


def test_a_coroutine_keeps_its_mode_between_its_steps():
    class Pause:
        def __await__(self):
            yield "paused"

    seen = []

    @backlight.no_grad()
    async def work():
        seen.append(backlight.is_grad_enabled())
        await Pause()
        seen.append(backlight.is_grad_enabled())

    run = work()
    assert run.send(None) == "paused" and backlight.is_grad_enabled()
    with pytest.raises(StopIteration):
        run.send(None)
    assert seen == [False, False] and backlight.is_grad_enabled()
