"""Hooks on saved tensors: what PyTorch packs and unpacks, in its order, with its errors."""

import threading

import pytest
import torch

import backlight
from backlight.autograd import graph as our_graph
from backlight.dispatch.dispatcher import dispatching
from backlight.kernels.sparse_array import sparse_use

SIDES = pytest.mark.parametrize("lib", [torch, backlight], ids=["torch", "backlight"])
EXPRESSIONS = [
    "x * w",
    "x * 3",
    "(x * 2) * w",
    "x.exp()",
    "x / w",
    "lib.where(x > 0.5, x, w)",
    "w @ x",
    "w @ w.T",
    "lib.softmax(x, 0)",
    "lib.cat([x, x])",
    "lib.stack([x, x]).relu()",
    "x**2",
    "x**w",
    "2**x",
    "w.max(1)[0]",
    "w.std(1)",
    "w.prod(1)",
    "w.sum(0)",
    "w[[0, 1], [1, 2]]",
    "lib.addcmul(x, w, w)",
    "(x * 1).exp_()",
    "lib.atan2(x, w)",
    "lib.nn.functional.gelu(x)",
    "lib.nn.functional.layer_norm(w, (3,))",
    "w.sort(1)[0]",
    "lib.min(x, w)",
    "x.cumsum(0) * x.flip(0)",
    "lib.nn.functional.softplus(w)",
]


def leaves(lib):
    x = lib.tensor([0.1, 0.7, 0.3], requires_grad=True)
    w = lib.tensor([[0.4, 0.5, 0.6], [0.7, 0.2, 0.9]], requires_grad=True)
    return x, w


def traced(lib, expression: str) -> list:
    """Return what hooks saw while an expression was computed and differentiated twice."""
    log = []
    x, w = leaves(lib)

    def pack(tensor):
        name = tensor.grad_fn and tensor.grad_fn.name()
        log.append(("pack", tensor.tolist(), name, tensor.requires_grad, tensor.is_leaf, lib.is_grad_enabled()))
        return tensor

    def unpack(tensor):
        log.append(("unpack", tensor.tolist(), lib.is_grad_enabled()))
        return tensor

    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = eval(expression, {"lib": lib, "x": x, "w": w})
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return log, [None if one.grad is None else one.grad.tolist() for one in (x, w)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_same_is_packed_and_unpacked_in_the_same_order(expression):
    (expected, slopes), (found, ours) = traced(torch, expression), traced(backlight, expression)
    shape = [(kind, *rest) for kind, _, *rest in expected]
    assert [(kind, *rest) for kind, _, *rest in found] == shape
    close = [backlight.tensor(a[1]).allclose(backlight.tensor(b[1])) for a, b in zip(expected, found)]
    assert all(close) or "layer_norm" in expression or "std" in expression
    for theirs, mine in zip(slopes, ours):
        assert (theirs is None) == (mine is None)
        assert theirs is None or torch.allclose(torch.tensor(theirs), torch.tensor(mine), atol=1e-5)


def message_of(function) -> tuple[str, str]:
    with pytest.raises(Exception) as problem:
        function()
    kinds = [kind.__name__ for kind in type(problem.value).__mro__]
    return next(k for k in kinds if k in ("RuntimeError", "TypeError", "ZeroDivisionError", "AssertionError")), str(
        problem.value
    )


def _add(tensor):
    return tensor.add_(1)


def _same(tensor):
    return tensor


def packs_in_place(lib, hooks, x, w):
    with hooks(_add, _same):
        return (x * 2) * w


def unpacks_a_number(lib, hooks, x, w):
    with hooks(_same, lambda packed: 3):
        y = x * w
    y.sum().backward()


def pack_fails(lib, hooks, x, w):
    with hooks(lambda tensor: 1 / 0, _same):
        return x * w


def unpack_fails(lib, hooks, x, w):
    with hooks(_same, lambda packed: 1 / 0):
        y = x * w
    y.sum().backward()


def no_functions(lib, hooks, x, w):
    with hooks(1, 2):
        return x * w


def disabled(lib, hooks, x, w):
    with lib.autograd.graph.disable_saved_tensors_hooks("outer"):
        with lib.autograd.graph.disable_saved_tensors_hooks("inner"):
            pass
        with hooks(_same, _same):
            pass


def disabled_too_late(lib, hooks, x, w):
    with hooks(_same, _same), lib.autograd.graph.disable_saved_tensors_hooks("too late"):
        pass


def raw_twice(lib, hooks, x, w):
    saved = (x * w).grad_fn._raw_saved_self
    saved.register_hooks(_same, _same)
    saved.register_hooks(_same, _same)


def raw_in_block(lib, hooks, x, w):
    with hooks(_same, _same):
        y = x * w
    y.grad_fn._raw_saved_other.register_hooks(_same, _same)


def raw_none(lib, hooks, x, w):
    (x * lib.ones(3)).grad_fn._raw_saved_self.register_hooks(_same, _same)


def raw_freed(lib, hooks, x, w):
    y = x * w
    saved = y.grad_fn._raw_saved_self
    y.sum().backward()
    saved.register_hooks(_same, _same)


def raw_in_place(lib, hooks, x, w):
    (x * w).grad_fn._raw_saved_self.register_hooks(_add, _same)


def freed(lib, hooks, x, w):
    with hooks(_same, _same):
        y = x * w
    y.sum().backward()
    return y.grad_fn._saved_self


def freed_again(lib, hooks, x, w):
    with hooks(_same, _same):
        y = x * w
    y.sum().backward()
    y.sum().backward()


@pytest.mark.parametrize(
    "program",
    [
        packs_in_place,
        unpacks_a_number,
        pack_fails,
        unpack_fails,
        no_functions,
        disabled,
        disabled_too_late,
        raw_twice,
        raw_in_block,
        raw_none,
        raw_freed,
        raw_in_place,
        freed,
        freed_again,
    ],
)
def test_errors_begin_as_pytorchs(program):
    expected, found = (
        message_of(lambda lib=lib: program(lib, lib.autograd.graph.saved_tensors_hooks, *leaves(lib)))
        for lib in (torch, backlight)
    )
    assert found[0] == expected[0]
    assert found[1].startswith(expected[1])


@SIDES
def test_the_innermost_hooks_are_used_and_gone_afterwards(lib):
    log, (x, w) = [], leaves(lib)
    hooks = lib.autograd.graph.saved_tensors_hooks
    outer = hooks(lambda tensor: log.append("outer"), _same)
    with outer:
        x * w
        with hooks(lambda tensor: log.append("inner"), _same):
            x * w
            with outer:
                x.exp()
        x.exp()
    x * w
    assert log == ["outer"] * 2 + ["inner"] * 2 + ["outer"] * 2


@SIDES
def test_a_tensor_written_to_after_it_was_packed_is_not_noticed(lib):
    x, w = lib.ones(3, requires_grad=True), lib.ones(3)
    with lib.autograd.graph.saved_tensors_hooks(_same, _same):
        y = x * w
    w.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@SIDES
def test_second_derivatives_go_through_what_was_unpacked(lib):
    x, w = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 4.0], requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(_same, lambda packed: packed * 2):
        y = x * w
    (slope,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    assert slope.tolist() == [6, 8]  # 2 w
    assert lib.autograd.grad(slope.sum(), w)[0].tolist() == [1, 1]  # the unpacking itself is not differentiated
    with lib.autograd.graph.saved_tensors_hooks(_same, _same):
        y = x.exp()
    (slope,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    assert lib.autograd.grad(slope.sum(), y, retain_graph=True)[0].tolist() == [1, 1]
    assert lib.autograd.grad(slope.sum(), x)[0].tolist() == x.exp().tolist()


@SIDES
def test_what_was_unpacked_stands_for_the_leaf(lib):
    x, w = leaves(lib)
    with lib.autograd.graph.saved_tensors_hooks(_same, _same):
        y = x * w
    saved = y.grad_fn._saved_self
    assert (saved is x, saved.is_leaf, saved.requires_grad, saved.grad_fn, saved._version) == (
        False,
        True,
        True,
        None,
        0,
    )
    (saved * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert saved.grad is None


@SIDES
def test_what_a_function_saves_is_packed(lib):
    log = []

    class Exp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(x, out, None)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, out, nothing = ctx.saved_tensors
            assert nothing is None
            log.append(("backward", out.grad_fn is not None, x.is_leaf))
            return grad * out

    def pack(tensor):
        log.append(("pack", tensor.is_leaf, tensor.requires_grad, lib.is_grad_enabled()))
        return tensor

    x, _ = leaves(lib)
    with lib.autograd.graph.saved_tensors_hooks(pack, _same):
        y = Exp.apply(x)
    y.sum().backward()
    assert log == [("pack", True, True, False), ("pack", False, True, False), ("backward", True, True)]
    assert x.grad.tolist() == x.exp().tolist()
    y = Exp.apply(x)
    y.grad_fn._raw_saved_tensors[1].register_hooks(_same, lambda packed: packed * 2)
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == (2 * x.exp()).tolist()


@SIDES
def test_hooks_on_one_saved_tensor(lib):
    x, w = leaves(lib)
    seen = []
    y = x * w
    raw = y.grad_fn._raw_saved_other
    assert raw.unpack_hook is None
    raw.register_hooks(
        lambda tensor: seen.append((tensor.requires_grad, tensor is w)) or tensor, lambda packed: packed * 2
    )
    assert seen == [(False, False)]
    assert y.grad_fn._saved_other.tolist() == (w * 2).tolist()
    y.sum().backward()
    assert x.grad.tolist() == (w * 2).sum(0).tolist()
    assert raw.unpack_hook is None  # freed


@SIDES
def test_save_on_cpu_changes_no_gradient(lib):
    expected = None
    for block in (None, lib.autograd.graph.save_on_cpu(), lib.autograd.graph.save_on_cpu(pin_memory=True)):
        x, w = leaves(lib)
        if block is None:
            y = (x * w).exp().sum()
        else:
            with block:
                y = (x * w).exp().sum()
        y.backward()
        expected = expected or x.grad.tolist()
        assert x.grad.tolist() == expected


@SIDES
def test_nothing_is_packed_under_no_grad_or_in_another_thread(lib):
    log, (x, w) = [], leaves(lib)
    with lib.autograd.graph.saved_tensors_hooks(log.append, _same):
        with lib.no_grad():
            x * w
        thread = threading.Thread(target=lambda: x * w)
        thread.start()
        thread.join()
    assert log == []


@SIDES
def test_what_a_recorded_backward_saves_is_packed_too(lib):
    log, x = [], lib.tensor([2.0], requires_grad=True)
    y = x**3
    with lib.autograd.graph.saved_tensors_hooks(lambda tensor: log.append(tensor.item()) or tensor, _same):
        (slope,) = lib.autograd.grad(y, x, create_graph=True)
    assert log
    assert lib.autograd.grad(slope, x)[0].item() == 12  # 6 x


def test_memory_that_was_packed_away_is_free():
    held = []

    def pack(tensor):
        held.append(tensor.tolist())
        return len(held) - 1

    x = backlight.ones(3, requires_grad=True)
    with our_graph.saved_tensors_hooks(pack, lambda number: backlight.tensor(held[number])):
        y = (x * 2).exp()
        z = backlight.nn.functional.layer_norm(y, (3,))
    nodes = [node for node in our_graph.nodes(z) if node.saved_slots]
    assert nodes
    for node in nodes:
        kept = [getattr(node, slot) for slot, _ in node.saved_slots]
        assert not any(isinstance(one, (backlight.Tensor,)) and one.ndim for one in kept)
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx([0, 0, 0], abs=1e-6)


def test_nothing_is_left_behind_that_could_cost():
    x, w = leaves(backlight)
    backlight.cat([x, x])
    assert dispatching.active == sparse_use.begun
    with our_graph.saved_tensors_hooks(_same, _same):
        assert dispatching.active
        assert (x * w).grad_fn.__class__ is not backlight.mul.op.node_class
    assert dispatching.active == sparse_use.begun
    assert (x * w).grad_fn.__class__ is backlight.mul.op.node_class
