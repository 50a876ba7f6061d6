"""What programs that keep graphs of gradients leave behind: nothing; and where Python's collector is needed, it does.

PyTorch's known leaks (a parameter whose `.grad` holds its own graph, a node whose `metadata` or saved tensors hold its
output) lie in cycles through C++ that no collector sees. Here every such cycle is Python's.
"""

import gc
import weakref
from collections import Counter

import pytest
from graph_leaks import DIE_BY_REFERENCE_COUNT, NEED_THE_COLLECTOR, Fails, expect_failure

import backlight
from backlight.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from backlight.engine.node import Node

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
    pytest.mark.filterwarnings("ignore:Error detected in"),
]


@pytest.fixture(scope="module", autouse=True)
def earlier_objects_frozen():
    """Freeze what earlier tests left: millions of objects would be collected and counted again each time."""
    gc.collect()
    gc.freeze()


WARM_UP = 4  # what is made once (code of ops, caches) is there after the first runs


def alive() -> Counter:
    """Count tensors, nodes and everything else that the collector knows of."""
    kinds = ((backlight.Tensor, "tensor"), (Node, "node"), (object, "other"))
    return Counter(next(name for kind, name in kinds if issubclass(type(one), kind)) for one in gc.get_objects())


def left_after(program, times: int, *, collected: bool) -> Counter:
    """Return how many objects more there are after a program has run a number of times."""
    w = backlight.full((3, 3), 0.5, requires_grad=True)
    for _ in range(WARM_UP):
        program(w)
    w.grad = None
    gc.collect()
    gc.freeze()
    alive()
    gc.disable()
    try:
        before = alive()
        for _ in range(times):
            program(w)
        w.grad = None
        if collected:
            gc.collect()
        return alive() - before
    finally:
        gc.enable()


@pytest.mark.parametrize("program", DIE_BY_REFERENCE_COUNT.values(), ids=DIE_BY_REFERENCE_COUNT)
def test_what_a_step_made_dies_by_reference_count(program):
    left = left_after(program, 30, collected=False)
    assert left["tensor"] <= 2 and left["node"] <= 2 and left["other"] < 15, dict(left)


@pytest.mark.parametrize("program", NEED_THE_COLLECTOR.values(), ids=NEED_THE_COLLECTOR)
def test_cycles_that_a_program_makes_are_collected(program):
    left = left_after(program, 30, collected=True)
    assert not left["tensor"] and not left["node"] and left["other"] < 10, dict(left)


def test_what_never_ran_is_collected_though_hooks_packed_an_ops_own_output():
    w = backlight.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda saved: saved, lambda held: held):
        y = w.exp()
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None


def test_a_hook_of_several_keeps_nothing_of_a_backward_that_failed():
    a, b = (backlight.ones(3, requires_grad=True) for _ in range(2))
    register_multi_grad_hook([a, b], lambda grads: None)
    seen = []
    a.register_hook(lambda grad: seen.append(weakref.ref(grad)))
    gc.disable()
    try:
        for _ in range(3):
            expect_failure((a * 2 * Fails.apply(b)).sum().backward)
        assert not any(one() for one in seen)
    finally:
        gc.enable()


def test_hooks_and_metadata_of_an_accumulator_outlive_it():
    w, log = backlight.ones(3, requires_grad=True), []
    end = (w * 2).grad_fn.next_functions[0][0]
    end.register_prehook(lambda grads: log.append("before"))
    end.metadata["name"] = "w"
    first = weakref.ref(end)
    del end
    assert first() is None
    again = (w * 2).grad_fn.next_functions[0][0]
    assert again.metadata == {"name": "w"} and again is (w * 3).grad_fn.next_functions[0][0]
    (w * 2).sum().backward()
    assert log == ["before"]
