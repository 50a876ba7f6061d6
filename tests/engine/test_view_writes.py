"""A write to a view stands in its base's history as it does in PyTorch: one node, with the write's own inside."""

import pytest
import torch

import backlight

ENGINES = (torch, backlight)
WRITES = {
    "mul": lambda t, part, w: part.mul_(w),
    "add": lambda t, part, w: part.add_(w, alpha=2),
    "number": lambda t, part, w: part.mul_(3),
    "unary": lambda t, part, w: part.tanh_(),
    "relu": lambda t, part, w: part.relu_(),
    "copy": lambda t, part, w: part.copy_(w),
    "broadcast": lambda t, part, w: part.copy_(w[:1]),
    "zero": lambda t, part, w: part.zero_(),
    "a tensor's number": lambda t, part, w: part.__setitem__(..., w[0].detach()),
    "an element": lambda t, part, w: part.__setitem__(0, w[0]),
    "constant": lambda t, part, w: part.copy_(w.detach()),
    "clamp": lambda t, part, w: part.clamp_(min=0.1),
    "addcmul": lambda t, part, w: part.addcmul_(w, w),
    "lerp": lambda t, part, w: part.lerp_(w, 0.5),
    "whole": lambda t, part, w: part.__setitem__(..., w),
    "spread": lambda t, part, w: part.__setitem__(..., w[1:]),
    "rows": lambda t, part, w: part.__setitem__([1, 0], w),
    "one row": lambda t, part, w: part.__setitem__([1], w[None, :1]),
}


def written(t, write):
    """Return (w, the base, what was in it) after a write to the part of a base."""
    start = t.arange(6, dtype=t.float64).requires_grad_()
    w = t.tensor([0.5, 2.0], dtype=t.float64, requires_grad=True)
    base = start.sin()
    WRITES[write](t, base[1:3], w)
    return w, base, start


def names(node, depth=5):
    """Return the names of a node and of those behind it."""
    if node is None or not depth:
        return None
    return node.name(), [names(one, depth - 1) for one, _ in node.next_functions]


@pytest.mark.parametrize("write", WRITES)
def test_the_graph_of_a_written_base_is_that_of_pytorch(write):
    theirs, ours = (written(t, write)[1].grad_fn for t in ENGINES)
    assert ours.name().endswith("CopySlices")
    assert names(ours) == names(theirs)


@pytest.mark.parametrize("write", WRITES)
def test_the_graph_is_the_same_where_saved_tensors_are_packed(write):
    found = []
    for t in ENGINES:
        with t.autograd.graph.saved_tensors_hooks(lambda one: one.detach().clone(), lambda packed: packed):
            found.append(names(written(t, write)[1].grad_fn))
    assert found[0] == found[1]


@pytest.mark.parametrize("write", WRITES)
def test_a_written_view_of_a_dual_number_has_pytorch_s_tangent(write):
    found = []
    for t in ENGINES:
        with t.autograd.forward_ad.dual_level():
            base = t.autograd.forward_ad.make_dual(t.arange(6.0), t.arange(6.0).cos())
            WRITES[write](t, base[1:3], t.tensor([0.5, 2.0]))
            found.append((t.autograd.forward_ad.unpack_dual(base).tangent.tolist(), base.requires_grad))
    assert found[1] == (pytest.approx(found[0][0]), False)


@pytest.mark.parametrize("write", WRITES)
def test_gradients_of_both_orders_pass_a_written_base(write):
    found = []
    for t in ENGINES:
        w, base, start = written(t, write)
        first = t.autograd.grad((base * base).sum(), [start, w], create_graph=True, materialize_grads=True)
        score = sum((one * one).sum() for one in first)
        second = t.autograd.grad(score, [start, w], materialize_grads=True)
        found.append([one.tolist() for one in (*first, *second)])
    for mine, their in zip(found[1], found[0]):
        assert mine == pytest.approx(their, rel=1e-12)


@pytest.mark.parametrize("write", WRITES)
def test_a_written_base_is_differentiated_once_unless_the_graph_is_retained(write):
    for t in ENGINES:
        base = written(t, write)[1]
        base.sum().backward(retain_graph=True)
        base.sum().backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            base.sum().backward()


@pytest.mark.parametrize("write", ["mul", "copy", "spread"])
def test_hooks_of_the_node_of_a_written_base_see_what_pytorch_shows(write):
    seen = []
    for t in ENGINES:
        _, base, _ = written(t, write)
        base.grad_fn.register_hook(lambda given, arrived: seen.append([one.tolist() for one in (*given, *arrived)]))
        (base * base).sum().backward()
    theirs, ours = seen
    assert len(ours) == len(theirs)
    for mine, their in zip(ours, theirs):
        assert mine == pytest.approx(their)


def test_a_write_that_is_no_single_node_passes_its_gradient_on():
    found = []
    for t in ENGINES:
        start = t.arange(6, dtype=t.float32).requires_grad_()
        w = t.tensor([0.5, 2.0], dtype=t.float64, requires_grad=True)
        base = start * 1
        base[1:3].mul_(w)
        (base * base).sum().backward()
        found.append((start.grad.tolist(), w.grad.tolist()))
    assert found[0] == found[1]


def test_a_function_that_marks_its_second_input_dirty_gives_each_input_its_gradient():
    class Added(backlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(y)
            return y.add_(x)

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad, 3 * grad

    x = backlight.ones(2, requires_grad=True)
    start = backlight.ones(4, requires_grad=True)
    base = start * 1
    Added.apply(x, base[1:3])
    base.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert start.grad.tolist() == [1, 3, 3, 1]


def test_a_leaf_told_not_to_require_grad_still_calls_the_hooks_of_its_node():
    found = []
    for t in ENGINES:
        x = t.ones(2, requires_grad=True)
        y = (x * 3).sum()
        node = y.grad_fn.next_functions[0][0].next_functions[0][0]
        seen = []
        node.register_prehook(lambda grads, seen=seen: seen.append(("pre", grads[0].tolist())))
        node.register_hook(lambda given, grads, seen=seen: seen.append(("post", given, grads[0].tolist())))
        x.requires_grad_(False)
        y.backward()
        found.append((seen, x.grad))
    assert found[0] == found[1]
