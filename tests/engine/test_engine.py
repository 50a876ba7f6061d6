"""The backward walk: what arrives where, whose memory it is, from how many threads, and what the graph shows."""

import threading

import numpy as np
import pytest
import torch
from snippets import assert_shows_the_same

import backlight
from backlight.autograd import grad
from backlight.autograd import graph as graphs
from backlight.engine.accumulate_grad import HELD_BY_ONE_LOCAL

SNIPPETS = {
    "a leaf used twice": "w = torch.tensor([1., 2.], requires_grad=True); (w * w + w).sum().backward(); print(w.grad)",
    "a leaf added to itself": "w = torch.tensor([1., 2.], requires_grad=True); (w + w).sum().backward(); print(w.grad)",
    "gradients add up over calls": (
        "w = torch.tensor([1., 2.], requires_grad=True)\n"
        "for step in range(3):\n    (w * w).sum().backward()\nprint(w.grad)"
    ),
    "a diamond": "w = torch.tensor(2., requires_grad=True); a = w * 3; b = w * 5; (a * b).backward(); print(w.grad)",
    "a result reached by paths of different lengths": (
        "w = torch.tensor(2., requires_grad=True); h = w * 3; y = h * (h + 1) * ((h * 2 - 5) * h); y.backward()\n"
        "print(w.grad)"
    ),
    "several roots": (
        "w = torch.tensor([1., 2.], requires_grad=True)\n"
        "torch.autograd.backward([w * 2, (w * w).sum()], [torch.tensor([1., 10.]), None]); print(w.grad)"
    ),
    "the same root twice": (
        "w = torch.tensor(3., requires_grad=True); y = w * 2; torch.autograd.backward([y, y]); print(w.grad)"
    ),
    "a root within the graph of another": (
        "w = torch.tensor(3., requires_grad=True); a = w * 2; b = a * 5; torch.autograd.backward([b, a]); print(w.grad)"
    ),
    "grad of a leaf by itself": (
        "w = torch.ones(2, requires_grad=True); print(torch.autograd.grad(w, [w, w], torch.ones(2)))"
    ),
    "grad with weights, some None": (
        "w = torch.ones(2, requires_grad=True)\n"
        "print(torch.autograd.grad([w * 2, (w * 3).sum()], w, [torch.tensor([1., 5.]), None]))"
    ),
    "grad of results and leaves together": (
        "w = torch.tensor(3., requires_grad=True); h = w * 2; y = h * h; print(torch.autograd.grad(y, [w, h, w]))"
    ),
    "grad touches no grad": "w = torch.tensor(3., requires_grad=True); torch.autograd.grad(w * w, w); print(w.grad)",
    "grad in batches": (
        "w = torch.tensor([1., 2.], requires_grad=True); y = w * w\n"
        "rows = torch.tensor([[1., 0.], [0., 1.], [2., 2.]])\n"
        "print(torch.autograd.grad(y, w, rows, is_grads_batched=True))"
    ),
    "grad in batches, of several outputs, recorded": (
        "w = torch.tensor([1., 2.], requires_grad=True); rows = torch.ones(3, 2)\n"
        "(g,) = torch.autograd.grad([w * w, w * 2], w, [rows, rows], is_grads_batched=True, create_graph=True)\n"
        "print(g.tolist(), torch.autograd.grad(g.sum(), w))"
    ),
    "third derivative": (
        "w = torch.tensor(2., requires_grad=True); y = w * w * w * w\n"
        "for order in range(3):\n    (y,) = torch.autograd.grad(y, w, create_graph=True)\n    print(y)"
    ),
    "create_graph in backward": (
        "w = torch.tensor(2., requires_grad=True); (w * w * w).backward(create_graph=True); g = w.grad; w.grad = None\n"
        "g.backward(); print(w.grad, g.grad_fn.name(), g.grad_fn.next_functions)"
    ),
    "create_graph without retain_graph frees": (
        "w = torch.tensor(2., requires_grad=True); y = w.exp(); torch.autograd.grad(y, w, create_graph=True, "
        "retain_graph=False); y.backward()"
    ),
    "a graph freed in part": (
        "w = torch.tensor(2., requires_grad=True); h = w.exp(); a = h * 2; b = h.tanh()\n"
        "torch.autograd.grad(a, h); b.backward(); print(w.grad)"
    ),
    "an edge of another graph": (
        "w = torch.tensor(2., requires_grad=True); e = torch.autograd.graph.get_gradient_edge(w * 3)\n"
        "print(e.node.name(), e.output_nr, torch.autograd.grad(e, w, torch.tensor(5.)))"
    ),
    "grad for an edge": (
        "w = torch.tensor(2., requires_grad=True); h = w * 3; y = h * h\n"
        "e, f = (torch.autograd.graph.get_gradient_edge(t) for t in (h, w))\nprint(torch.autograd.grad(y, [e, f]))"
    ),
    "an edge of a constant": "torch.autograd.graph.get_gradient_edge(torch.ones(2))",
    "a hidden write can be announced": (
        "w = torch.ones(2, requires_grad=True); h = w * 2; y = h * h; torch.autograd.graph.increment_version(h)\n"
        "print(h._version); y.sum().backward()"
    ),
    "a float64 leaf under a float32 result": (
        "w = torch.ones(2, dtype=torch.float64, requires_grad=True); (w.float() * 3).sum().backward(); print(w.grad)"
    ),
    "a broadcast leaf": (
        "w = torch.ones(3, requires_grad=True); b = torch.ones(2, 1, requires_grad=True); (w * b).sum().backward()\n"
        "print(w.grad, b.grad)"
    ),
    "grad may be assigned and is added to": (
        "w = torch.ones(2, requires_grad=True); w.grad = torch.tensor([10., 20.]); (w * 2).sum().backward()\n"
        "print(w.grad)"
    ),
    "an expanded grad may be assigned": (
        "w = torch.ones(2, requires_grad=True); w.grad = torch.ones(1).expand(2).clone(); (w * 2).sum().backward()\n"
        "print(w.grad)"
    ),
    "grad may be deleted": "w = torch.ones(2, requires_grad=True); (w * 2).sum().backward(); del w.grad; print(w.grad)",
    "Variable": (
        "V = torch.autograd.Variable; v = V(torch.ones(2), requires_grad=True); (v * 2).sum().backward(); "
        "print(v.grad)\n"
        "print(isinstance(v, V), isinstance(3, V), V(torch.ones(2)))"
    ),
    "a leaf told not to require grad gets none": (
        "w = torch.ones(2, requires_grad=True); w.register_hook(lambda g: print('hook', g)); y = (w * w).sum()\n"
        "w.requires_grad_(False); y.backward(); print(w.grad)"
    ),
    "a detached leaf gets none": (
        "w = torch.ones(2, requires_grad=True); y = (w * 2).sum(); w.detach_(); y.backward(); print(w.grad)"
    ),
    "a detached twin is a leaf of its own": (
        "w = torch.ones(2, requires_grad=True); v = w.detach().requires_grad_(); (v * w).sum().backward()\n"
        "print(w.grad, v.grad)"
    ),
}

FACE = {
    "names": (
        "w = torch.ones(2, requires_grad=True); y = ((w + 1) * w).exp().sum(); n = y.grad_fn\n"
        "while n is not None:\n"
        "    print(n.name(), type(n).__name__, [e[0].name() if e[0] else None for e in n.next_functions])\n"
        "    n = n.next_functions[0][0] if n.next_functions else None"
    ),
    "an accumulator": (
        "w = torch.ones(2, requires_grad=True); a = (w * 2).grad_fn.next_functions[0][0]\n"
        "print(a, a.name(), a.variable is w, a.next_functions, a._sequence_nr())\n"
        "print(a is (w * 3).grad_fn.next_functions[0][0])"
    ),
    "output numbers": (
        "w = torch.ones(3, requires_grad=True); a, b, c = w.unbind(); y = b * c\n"
        "print(b.output_nr, c.output_nr, y.grad_fn.next_functions, b.grad_fn is c.grad_fn, w.output_nr)"
    ),
    "what a node saved": (
        "w = torch.tensor([1., 2.], requires_grad=True); k = torch.tensor([3., 4.]); n = (w * k).grad_fn\n"
        "print(n._saved_other, n._saved_self)\nm = (w * w).grad_fn; print(m._saved_self, m._saved_other)"
    ),
    "what a node saved of its result": (
        "w = torch.tensor([1., 2.], requires_grad=True); y = w.exp(); s = y.grad_fn._saved_result\n"
        "print(s, s.grad_fn is y.grad_fn, s.data_ptr() == y.data_ptr())"
    ),
    "a saved result read after it was freed": (
        "w = torch.tensor([1., 2.], requires_grad=True); y = w.exp(); y.sum().backward(); y.grad_fn._saved_result"
    ),
    "a saved input read after it was freed": (
        "w = torch.tensor([1., 2.], requires_grad=True); y = w * w; y.sum().backward(); y.grad_fn._saved_self"
    ),
    "sequence numbers grow": (
        "w = torch.ones(2, requires_grad=True); a = w * 2; b = w * 3\n"
        "print(b.grad_fn._sequence_nr() - a.grad_fn._sequence_nr())"
    ),
    "a node can be called": (
        "w = torch.tensor([1., 2.], requires_grad=True); one = torch.ones(2)\n"
        "print((w * 3).grad_fn(one), w.exp().grad_fn(one))"
    ),
    "a leaf has no grad_fn": "w = torch.ones(2, requires_grad=True); print(w.grad_fn, w.is_leaf, (w * 2).is_leaf)",
    "a node has no such attribute": "w = torch.ones(2, requires_grad=True); (w * 2).grad_fn.nothing",
}


@pytest.mark.parametrize("source", (SNIPPETS | FACE).values(), ids=SNIPPETS | FACE)
def test_does_what_pytorch_does(source):
    assert_shows_the_same(source)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_saved_input_that_was_detached_in_place_is_refused_and_a_saved_result_is_what_it_was(create_graph):
    for t in (torch, backlight):
        w = t.tensor([2.0], requires_grad=True)
        h, r = w * w, w.exp()
        y, z = (h * h).sum(), (r * 3).sum()
        h.detach_()
        r.detach_()
        assert (h._version, h.requires_grad, h.grad_fn) == (0, False, None)
        with pytest.raises(RuntimeError, match=r"a saved tensor that has been detached in-place, i\.e\. with .detach_"):
            t.autograd.grad(y, w, create_graph=create_graph)
        (found,) = t.autograd.grad(z, w, create_graph=create_graph)
        assert t.allclose(found, 3 * w.exp())


def test_a_write_beside_a_detach_in_place_is_found():
    for t in (torch, backlight):
        w = t.tensor([2.0], requires_grad=True)
        r = w.exp()
        z = r.sum()
        r.detach_()
        r.add_(1)
        assert r._version == 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


def leaf(*values):
    return backlight.tensor(values, requires_grad=True)


def memory(tensor):
    return tensor._data.__array_interface__["data"][0]


# --- whose memory a gradient is (NOTE [Stealing]) --------------------------------------------------------------------


def test_a_fresh_gradient_becomes_grad_without_a_copy():
    """The array that the node's rule returned is the array in `.grad`."""
    made = []

    def remember(grad_inputs, grad_outputs):
        made.append(memory(grad_inputs[0]))

    w, k = leaf(1.0, 2.0), backlight.tensor([3.0, 4.0])
    y = w * k
    y.grad_fn.register_hook(remember)
    y.sum().backward()
    assert memory(w.grad) == made[0]


@pytest.mark.parametrize("uses", [2, 3, 5])
def test_a_sum_that_the_walk_made_becomes_grad_without_a_copy(uses):
    w = backlight.ones(1000, requires_grad=True)
    total = w * 1
    for _ in range(uses - 1):
        total = total + w * 1
    total.sum().backward()
    assert w.grad._data.base is None and w.grad._data.flags.owndata
    assert w.grad.tolist() == [uses] * 1000


def test_the_count_of_one_local_is_the_interpreters():
    assert HELD_BY_ONE_LOCAL <= 2


def test_the_users_gradient_is_not_taken():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    given = backlight.tensor([5.0, 6.0])
    (a + b).backward(given)
    assert len({memory(given), memory(a.grad), memory(b.grad)}) == 3
    a.grad.mul_(0)
    assert given.tolist() == [5.0, 6.0] and b.grad.tolist() == [5.0, 6.0]


def test_the_users_gradient_of_a_leaf_is_not_taken():
    a, given = leaf(1.0, 2.0), backlight.tensor([5.0, 6.0])
    a.backward(given)
    assert memory(a.grad) != memory(given)


def test_two_leaves_do_not_share_a_gradient():
    a, b, c = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)
    ((a + b + c) * 2).sum().backward()
    assert len({memory(a.grad), memory(b.grad), memory(c.grad)}) == 3


@pytest.mark.parametrize("watched", [False, True], ids=["short path", "watched path"])
def test_two_leaves_do_not_share_a_gradient_on_either_path(watched):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    total = a + b
    if watched:
        total.register_hook(lambda grad: None)
    (total * backlight.tensor([2.0, 3.0])).sum().backward()
    a.grad.add_(100)
    assert b.grad.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("watched", [False, True], ids=["short path", "watched path"])
def test_a_fresh_gradient_is_stolen_on_either_path(watched):
    """The memory that `.grad` has is memory that a rule asked for, not a copy's: nothing was allocated in between."""
    kept = []

    class Remember(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            fresh = grad * 2
            kept.append(memory(fresh))
            return fresh

    w = leaf(1.0, 2.0)
    y = Remember.apply(w)
    if watched:
        y.register_hook(lambda grad: None)
    y.sum().backward()
    assert kept == [memory(w.grad)]


def test_a_gradient_that_a_function_keeps_is_copied():
    kept = []

    class Keep(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            kept.append(grad * 2)
            return kept[0]

    w = leaf(1.0, 2.0)
    Keep.apply(w).sum().backward()
    w.grad.add_(100)
    assert kept[0].tolist() == [2.0, 2.0]


def test_a_view_is_copied():
    w = leaf(1.0, 2.0, 3.0, 4.0)
    held = backlight.tensor([[1.0, 2.0], [3.0, 4.0]])
    w.view(2, 2).backward(held)
    w.grad.add_(100)
    assert held.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_grad_shares_no_memory_between_its_results():
    a, b, given = leaf(1.0, 2.0), leaf(3.0, 4.0), backlight.tensor([5.0, 6.0])
    first, second = grad(a + b, [a, b], given)
    assert len({memory(first), memory(second), memory(given)}) == 3


def test_a_retained_gradient_is_ones_own():
    w = leaf(1.0, 2.0)
    h = w * 1
    h.retain_grad()
    (h + backlight.zeros(2)).backward(backlight.tensor([5.0, 6.0]))
    h.grad.mul_(0)
    assert w.grad.tolist() == [5.0, 6.0]


def test_accumulation_keeps_the_same_grad_object():
    """An optimizer may hold `.grad`."""
    w = leaf(1.0, 2.0)
    (w * 2).sum().backward()
    held = w.grad
    (w * 2).sum().backward()
    assert w.grad is held and held.tolist() == [4.0, 4.0]


def test_a_grad_that_cannot_be_written_is_replaced():
    w = leaf(1.0, 2.0)
    w.grad = backlight.ones(1).expand(2)
    (w * 2).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


# --- threads ---------------------------------------------------------------------------------------------------------


def in_threads(count, work):
    problems = []

    def guarded(number):
        try:
            work(number)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_backward_from_8_threads_adds_up_exactly():
    w, v = leaf(1.0, 2.0, 3.0), backlight.tensor(2.0, requires_grad=True)

    def work(number):
        for _ in range(200):
            ((w * (number + 1)) * v).sum().backward()

    in_threads(8, work)
    assert w.grad.tolist() == [200 * 36 * 2.0] * 3
    assert v.grad.item() == 200 * 36 * 6.0


def test_backward_from_8_threads_through_one_retained_graph():
    w = leaf(1.0, 2.0, 3.0)
    y = (w.exp() * w.detach()).sum()
    in_threads(8, lambda number: [y.backward(retain_graph=True) for _ in range(100)])
    np.testing.assert_allclose(w.grad.numpy(), 800 * np.exp([1, 2, 3]) * [1, 2, 3], rtol=1e-5)


def test_a_thread_that_does_not_record_leaves_the_others_alone():
    stop, results = threading.Event(), []
    w = leaf(1.0, 2.0)

    def switching(number):
        while not stop.is_set():
            with backlight.no_grad():
                results.append((w * 2).requires_grad)

    other = threading.Thread(target=switching, args=(0,))
    other.start()
    try:
        assert all((w * 2).requires_grad for _ in range(3000))
    finally:
        stop.set()
        other.join()
    assert results and not any(results)


def test_a_backward_within_a_backward_within_a_backward():
    w = backlight.tensor(2.0, requires_grad=True)
    depth = []

    def nested(arrived):
        depth.append(len(depth))
        if len(depth) < 5:
            with backlight.enable_grad():
                y = w * 1
                y.register_hook(nested)
                (y * 3).backward()

    y = w * 1
    y.register_hook(nested)
    (y * 3).backward()
    assert len(depth) == 5 and w.grad.item() == 15.0


# --- errors leave things in order ------------------------------------------------------------------------------------


def test_a_failed_backward_leaves_grad_mode_and_leaves_as_they_were():
    w = leaf(1.0, 2.0)

    def fail(arrived):
        raise ValueError("no")

    h = w * 2
    h.register_hook(fail)
    with pytest.raises(ValueError, match="no"):
        (h * 3).sum().backward()
    assert backlight.is_grad_enabled() and w.grad is None
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


# --- the face that PyTorch lacks -------------------------------------------------------------------------------------


def test_nodes_lists_a_graph_last_made_first():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = (w * v).exp().sum()
    assert [node.name() for node in graphs.nodes(y)] == [
        "SumBackward0",
        "ExpBackward0",
        "MulBackward0",
        *["torch::autograd::AccumulateGrad"] * 2,
    ]
    assert list(graphs.nodes(y.grad_fn)) == list(graphs.nodes(y))


def test_saved_gives_names_and_sizes():
    w = backlight.ones(1000, requires_grad=True)
    found = graphs.saved((w * 3).exp().sum())
    assert [(one.node.name(), one.name, one.bytes) for one in found] == [
        ("ExpBackward0", "_saved_result", 4000),
        ("MulBackward0", "_saved_other", 4),
    ]


def test_the_graphs_of_both_agree_in_shape():
    """The same program makes the same nodes in the same order."""

    def names(module, y):
        found, stack, seen = [], [y.grad_fn], set()
        while stack:
            node = stack.pop(0)
            if node is None or node in seen:
                continue
            seen.add(node)
            found.append(node.name())
            stack += [edge[0] for edge in node.next_functions]
        return found

    def program(module):
        w, b = module.ones(3, 4, requires_grad=True), module.ones(4, requires_grad=True)
        h = (module.ones(2, 3) @ w + b).tanh()
        return (h * h.exp()).mean() - h[0].sum() / 2

    assert names(backlight, program(backlight)) == names(torch, program(torch))
