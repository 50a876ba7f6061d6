"""A backward inside a backward, however deep: it goes on in other threads, with the state of the first."""

import contextvars
import threading
from pathlib import Path

import pytest
import torch

import backlight
from backlight.autograd import forward_ad
from backlight.dispatch.dispatcher import Observe
from backlight.dispatch.observers import Watcher
from backlight.engine.threads import MOST_BACKWARDS, anywhere, depth

DEEP = 300  # levels of each of which Python's thousand frames have room for three
BOTH = pytest.mark.parametrize("t", [torch, backlight], ids=["torch", "backlight"])


def in_tensor_hook(t, x, inner):
    y = x * 2
    y.register_hook(inner)
    return y


def in_leaf_hook(t, x, inner):
    x.register_hook(inner)
    return x * 2


def in_post_accumulate_hook(t, x, inner):
    x.register_post_accumulate_grad_hook(inner)
    return x * 2


def in_prehook(t, x, inner):
    y = x * 2
    y.grad_fn.register_prehook(inner)
    return y


def in_posthook(t, x, inner):
    y = x * 2
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: inner(grad_outputs))
    return y


def in_unpack_hook(t, x, inner):
    def unpack(packed):
        inner(None)
        return packed

    with t.autograd.graph.saved_tensors_hooks(lambda saved: saved, unpack):
        return x * (x.detach() + 1)


def in_function(t, x, inner):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            inner(grad)
            return grad * 2

    return Double.apply(x)


def nest(t, where, levels: int, innermost=lambda: None) -> float:
    """Run backwards one inside the other, and return the sum of the gradients of all of them."""
    total = 0.0

    def level(left: int) -> None:
        nonlocal total
        x = t.ones(1, dtype=t.float64, requires_grad=True)

        def inner(grad) -> None:
            with t.enable_grad():
                level(left - 1) if left else innermost()

        where(t, x, inner).sum().backward()
        total += x.grad.item()

    level(levels)
    return total


@BOTH
@pytest.mark.parametrize(
    "where",
    [
        in_tensor_hook,
        in_leaf_hook,
        in_post_accumulate_hook,
        in_prehook,
        in_posthook,
        in_unpack_hook,
        in_function,
    ],
)
def test_backwards_nest_deeper_than_python_lets_calls_nest_in_a_thread(where, t):
    assert nest(t, where, DEEP) == 2.0 * (DEEP + 1)


@BOTH
def test_grads_of_inputs_nest_as_deep(t):
    def level(left: int) -> float:
        x = t.ones(1, dtype=t.float64, requires_grad=True)
        y = x * 2

        def inner(grad):
            with t.enable_grad():
                return grad * (1 + level(left - 1))

        if left:
            y.register_hook(inner)
        return t.autograd.grad(y.sum(), x)[0].item() / 2

    assert level(DEEP) == DEEP + 1


def test_the_state_of_the_thread_goes_along_and_what_is_changed_comes_back():
    topic = contextvars.ContextVar("topic")
    topic.set("gradients")
    seen = []

    class Counting(Watcher):
        ops = 0

        def called(self, call):
            self.ops += call.name == "cosh"

    def innermost():
        x = backlight.ones(1)
        seen.append(threading.get_ident())
        seen.append(topic.get())
        seen.append(forward_ad.unpack_dual(dual.exp()).tangent is not None)
        with backlight.inference_mode():
            seen.append(backlight.is_inference_mode_enabled())
        x.cosh()
        backlight.set_grad_enabled(False)  # the block around this ends it

    watcher = Counting()
    packed = []
    with (
        forward_ad.dual_level(),
        Observe(watcher),
        backlight.autograd.graph.saved_tensors_hooks(lambda one: packed.append(one) or one, lambda one: one),
    ):
        dual = forward_ad.make_dual(backlight.ones(1), backlight.ones(1))
        nest(backlight, in_tensor_hook, 3 * MOST_BACKWARDS, innermost)
        assert forward_ad.unpack_dual(dual).tangent is not None
    assert seen[0] != threading.get_ident()
    assert seen[1:] == ["gradients", True, True]
    assert watcher.ops == 1
    assert backlight.is_grad_enabled()


def test_a_mode_that_a_hook_leaves_on_is_left_on_by_a_deep_one_too():
    def innermost():
        forward_ad.set_fwd_grad_enabled(False)

    try:
        nest(backlight, in_tensor_hook, 2 * MOST_BACKWARDS, innermost)
        assert not forward_ad.is_fwd_grad_enabled()
    finally:
        forward_ad.set_fwd_grad_enabled(True)


def test_what_is_raised_far_inside_comes_out_as_it_is():  # PyTorch loses it: SystemError
    class Problem(Exception):
        pass

    def fail():
        raise Problem("far inside")

    with pytest.raises(Problem) as caught:
        nest(backlight, in_tensor_hook, DEEP, fail)
    assert str(caught.value) == "far inside"
    assert backlight.is_grad_enabled()


def test_a_backward_that_meets_itself_is_stopped_and_the_next_one_runs():
    x = backlight.ones(1, requires_grad=True)
    y = x * 2

    def again(grad):
        with backlight.enable_grad():
            y.sum().backward(retain_graph=True)

    handle = y.register_hook(again)
    before = threading.active_count()
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        y.sum().backward(retain_graph=True)
    assert backlight.is_grad_enabled()
    assert (anywhere.backwards, depth.here, depth.waiting) == (0, 0, 0)
    assert threading.active_count() == before
    handle.remove()
    y.sum().backward()
    assert x.grad.item() == 2.0


@pytest.mark.parametrize("hooked", [False, True])
def test_a_recursion_error_anywhere_in_a_backward_leaves_the_modes_as_they_were(hooked):
    def at(frames: int, call):
        return at(frames - 1, call) if frames else call()

    failed = 0
    for frames in range(850, 1000):
        x = backlight.ones(2, requires_grad=True)
        y = x * 2
        if hooked:
            y.register_hook(lambda grad: grad * 1)
        try:
            at(frames, y.sum().backward)
        except RecursionError:
            failed += 1
        assert backlight.is_grad_enabled() and (x * 2).requires_grad
        assert (anywhere.backwards, depth.here) == (0, 0)
    assert failed > 10


def test_no_state_of_a_thread_stays_behind():
    source = Path(backlight.__file__).parent
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if "(threading.local)" in path.read_text()}
    assert found == {"engine/threads.py", "system/fork_safety.py"}  # the locks that a thread took to fork are its own
