"""Graphs die when their outputs do, without recursion, without cycles, and memory stays where it was."""

import gc
import sys
import tracemalloc
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import backlight
from backlight.autograd import grad


@contextmanager
def without_collector():
    """Everything that dies inside dies by reference count alone."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chain(x, length):
    for _ in range(length):
        x = x * 1.0
    return x


LONG = 200_000


def test_a_chain_of_200_000_ops_runs_and_is_freed_without_recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        w = backlight.tensor(2.0, requires_grad=True)
        with without_collector():
            y = chain(w, LONG)
            last = weakref.ref(y.grad_fn)
            first = w_first_node(y)
            y.backward()
            assert w.grad.item() == 1.0
            del y
            assert last() is None and first() is None
    finally:
        sys.setrecursionlimit(limit)


def w_first_node(y):
    """Return a weak reference to the node that was made first."""
    node = y.grad_fn
    while node.edges[0].is_leaf_edge is False:
        node = node.edges[0]
    return weakref.ref(node)


def test_a_chain_that_is_never_run_backward_is_freed_without_recursion():
    w = backlight.ones(2, requires_grad=True)
    with without_collector():
        y = chain(w, LONG)
        last = weakref.ref(y.grad_fn)
        del y
        assert last() is None


def test_a_long_chain_can_be_differentiated_twice():
    w = backlight.tensor(2.0, requires_grad=True)
    y = chain(w * w, 5000)
    (slope,) = grad(y, w, create_graph=True)
    (curvature,) = grad(slope, w)
    assert (slope.item(), curvature.item()) == (4.0, 2.0)


def step(w, b):
    h = backlight.tanh(backlight.ones(4, 8) @ w + b)
    ((h * h).mean() + h[0].exp().sum()).backward()


def test_an_ordinary_step_makes_no_cycles():
    w, b = backlight.ones(8, 8, requires_grad=True), backlight.ones(8, requires_grad=True)
    step(w, b)
    with without_collector():
        before = len(gc.get_objects())
        for _ in range(20):
            w.grad = b.grad = None
            step(w, b)
        w.grad = b.grad = None
        grown = len(gc.get_objects()) - before
        assert grown < 20, f"{grown} objects are left after 20 steps"
        assert gc.collect() < 20


PROGRAMS = {
    "product": lambda w: (w * w).sum(),
    "pointwise": lambda w: w.exp().log().tanh().sum(),
    "matmul and softmax": lambda w: (w @ w.t()).softmax(-1).sum(),
    "indexing": lambda w: w[0].sum() + w[:, 1].sum() + w.reshape(-1)[::2].sum(),
    "joining": lambda w: backlight.cat([w, w]).max() + backlight.stack([w, w]).mean(),
    "several outputs": lambda w: sum(part.sum() for part in w.unbind()) + w.max(0).values.sum(),
    "in place": lambda w: (w * 1).mul_(2).add_(w).sum(),
    "a choice": lambda w: backlight.where(w > 0, w, w * 2).sum(),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("backward", [False, True], ids=["forward only", "with backward"])
def test_a_graph_dies_with_its_output(program, backward):
    w = backlight.tensor(np.arange(9.0).reshape(3, 3).tolist(), requires_grad=True)
    with without_collector():
        y = program(w + 0)
        nodes = [weakref.ref(node) for node in backlight.autograd.graph.nodes(y) if node.edges]
        if backward:
            y.backward()
        del y
        alive = [node().name() for node in nodes if node() is not None]
        assert nodes and not alive, f"still alive: {alive}"


def test_what_was_saved_is_freed_by_backward():
    w = backlight.ones(1000, requires_grad=True)
    with without_collector():
        h = w * 2
        memory = weakref.ref(h)
        y = (h * h).sum()
        del h
        assert memory() is not None
        y.backward(retain_graph=True)
        assert memory() is not None
        y.backward()
        assert memory() is None


def test_the_walk_holds_no_gradient_longer_than_needed():
    """Peak memory of a backward through a long chain is a few gradients, not one for each node."""
    w = backlight.ones(100_000, requires_grad=True)
    y = w
    for _ in range(50):
        y = y + 1.0
    gradient = backlight.ones(100_000)
    for _ in range(2):  # the second time every op's code is there
        z = y * backlight.ones(100_000)
        for _ in range(50):
            z = z.neg()
        tracemalloc.start()
        z.backward(gradient, retain_graph=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 6 * 400_000, f"{peak / 400_000:.1f} gradients at the peak"


def test_memory_is_flat_over_50_repeats():
    w, b = backlight.ones(8, 8, requires_grad=True), backlight.ones(8, requires_grad=True)

    def repeat(times):
        for _ in range(times):
            w.grad = b.grad = None
            step(w, b)
            chain(w, 200).sum().backward()
            (slope,) = grad((w * w).sum(), w, create_graph=True)
            grad(slope.sum(), w)

    repeat(5)
    gc.collect()
    tracemalloc.start()
    try:
        repeat(5)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        repeat(50)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000, f"{after - before} bytes more after 50 repeats"


def test_the_cycle_of_create_graph_is_collected():
    w = backlight.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle"):
        (w * w).sum().backward(create_graph=True)
    leaf, slope = weakref.ref(w), weakref.ref(w.grad)
    del w
    gc.collect()
    assert leaf() is None and slope() is None


def test_grad_with_create_graph_makes_no_cycle():
    w = backlight.ones(3, requires_grad=True)
    with without_collector():
        (slope,) = grad((w * w).sum(), w, create_graph=True)
        node = weakref.ref(slope.grad_fn)
        del slope
        assert node() is None


def test_hooks_make_no_cycle_by_themselves():
    w = backlight.ones(3, requires_grad=True)
    with without_collector():
        h = w * 2
        h.register_hook(lambda grad: grad * 2)
        h.retain_grad()
        h.grad_fn.register_prehook(lambda grads: None)
        node = weakref.ref(h.grad_fn)
        h.sum().backward()
        del h
        assert node() is None


def test_in_place_writes_make_no_cycle():
    w = backlight.ones(4, requires_grad=True)
    with without_collector():
        h = w * 2
        h[1:3].mul_(3)
        h.exp_()
        node = weakref.ref(h.grad_fn)
        h.sum().backward()
        del h
        assert node() is None


def test_views_do_not_pile_up_on_their_base():
    base = backlight.ones(10, requires_grad=True) * 1
    for _ in range(1000):
        base[2:4].sum()
    assert len(base._views) < 64


def test_leaves_forget_nodes_that_used_them():
    w = backlight.ones(3, requires_grad=True)
    with without_collector():
        before = sys.getrefcount(w)
        for _ in range(5):
            (w * w).sum().backward()
        assert sys.getrefcount(w) == before


def test_looking_at_the_graph_leaves_nothing_behind():
    w = backlight.ones(3, requires_grad=True)
    with without_collector():
        y = (w * w).sum()
        node = weakref.ref(y.grad_fn)
        assert y.grad_fn.next_functions[0][0].next_functions[0][0].variable is w
        assert list(backlight.autograd.graph.nodes(y)) and repr(y.grad_fn)
        del y
        assert node() is None
