"""What the fuzzer (tests/fuzz.py) once found: each run on PyTorch and on backlight must show the same."""

from contextlib import nullcontext

import pytest
import torch

import backlight


def text_of(problem: Exception) -> str:
    return str(problem).split(";")[0].split("\n")[0][:60]


def same(program) -> list:
    """Run `program(t, see)` on both engines; check that both saw the same, and return it."""
    theirs, ours = [], []
    for t, seen in ((torch, theirs), (backlight, ours)):
        program(t, lambda *what, seen=seen: seen.append([w.tolist() if hasattr(w, "tolist") else w for w in what]))
    assert ours == theirs
    return ours


def attempt(act, see) -> None:
    try:
        act()
        see("done")
    except RuntimeError as problem:
        see(text_of(problem))


def doubled(t):
    class Doubled(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Doubled


def nothing(t):
    class Nothing(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    return Nothing


@pytest.mark.parametrize("create_graph", [False, True])
def test_leaves_that_had_all_their_gradients_are_written_when_a_later_node_fails(create_graph):
    def program(t, see):
        a, b, c = (t.ones(3, dtype=t.float64, requires_grad=True) for _ in range(3))
        factor = t.ones(3, dtype=t.float64)
        late = b * factor
        total = (late + a).sum() + c.sum()
        factor.mul_(2)
        attempt(lambda: t.autograd.backward(total, retain_graph=True, create_graph=create_graph), see)
        see(a.grad, b.grad, c.grad)

    with pytest.warns(UserWarning, match="create_graph") if create_graph else nullcontext():
        seen = same(program)
    assert seen[1] == [[1.0] * 3, None, [1.0] * 3]


def test_leaves_asked_for_are_written_when_a_later_node_fails():
    def program(t, see):
        a, b = (t.ones(3, dtype=t.float64, requires_grad=True) for _ in range(2))
        factor = t.ones(3, dtype=t.float64)
        total = (b * factor).sum() + a.sum()
        factor.mul_(2)
        attempt(lambda: total.backward(inputs=[a, b]), see)
        see(a.grad, b.grad)

    assert same(program)[1] == [[1.0] * 3, None]


def test_materialised_zeros_require_grad_under_create_graph():
    def program(t, see):
        a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        (zeros,) = t.autograd.grad(a.sum(), [b], create_graph=True, allow_unused=True, materialize_grads=True)
        see(zeros, zeros.requires_grad, zeros.is_leaf)

    assert same(program) == [[[0.0, 0.0], True, True]]


def test_hooks_of_a_lone_root_run_even_if_it_leads_to_no_input():
    def program(t, see):
        a, other = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        y = a * 2
        y.register_hook(lambda grad: see("y", grad))
        y.retain_grad()
        a.register_hook(lambda grad: see("a", grad))
        see(*t.autograd.grad(y, [other], t.ones(2), allow_unused=True), y.grad)
        see(*t.autograd.grad(a, [other], t.ones(2), allow_unused=True))
        z = y * 1
        t.autograd.backward([y, z], [t.ones(2)] * 2, inputs=[other])
        see(y.grad)

    assert ["y", [1.0, 1.0]] in same(program)


def test_hooks_hear_of_gradients_that_did_not_come():
    def program(t, see):
        a = t.ones(3, 2, requires_grad=True)
        first, second, _ = a.unbind(0)
        for name, one in (("first", first), ("second", second)):
            one.register_hook(lambda grad, name=name: see(name, grad))
        first.sum().backward()
        z = t.ones(2, requires_grad=True).sin()
        leaf = t.ones(2, requires_grad=True)
        leaf.register_hook(lambda grad: see("leaf", grad))
        leaf.register_post_accumulate_grad_hook(lambda leaf: see("accumulated", leaf.grad))
        z = leaf.sin()
        z.register_hook(lambda grad: see("z", grad))
        z.grad_fn.register_prehook(lambda grads: see("before", *grads))
        z.grad_fn.register_hook(lambda grads, outputs: see("after", *grads, *outputs))
        nothing(t).apply(z).sum().backward()

    assert same(program)[1:] == [
        ["second", None],
        ["z", None],
        ["before", None],
        ["after", None, None],
        ["leaf", None],
        ["accumulated", None],
    ]


def test_a_hook_cannot_replace_a_gradient_that_did_not_come():
    def program(t, see):
        z = t.ones(2, requires_grad=True).sin()
        z.register_hook(lambda grad: t.ones(2))
        attempt(nothing(t).apply(z).sum().backward, see)

    assert same(program) == [["can't replace a None gradient with a non-None value"]]


def test_a_node_whose_posthook_fails_is_not_freed():
    def program(t, see):
        y = t.ones(2, requires_grad=True).exp()
        handle = y.grad_fn.register_hook(lambda grads, outputs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        handle.remove()
        attempt(y.sum().backward, see)
        attempt(y.sum().backward, see)

    assert same(program)[0] == ["done"]


def test_a_node_whose_posthook_removes_itself_is_freed():
    def program(t, see):
        y = t.ones(2, requires_grad=True).exp()
        handle = y.grad_fn.register_hook(lambda grads, outputs: handle.remove())
        attempt(y.sum().backward, see)
        attempt(y.sum().backward, see)

    assert same(program)[1] != ["done"]


def test_a_node_that_had_to_save_nothing_may_run_twice():
    def program(t, see):
        x = t.full((3,), 5.0, requires_grad=True)
        y = t.remainder(x, t.ones(3) * 2)
        attempt(y.sum().backward, see)
        attempt(y.sum().backward, see)
        see(x.grad)

    assert same(program) == [["done"], ["done"], [[2.0] * 3]]


def test_a_result_asked_for_runs_its_node_though_nothing_is_wanted_of_it():
    def program(t, see):
        a = t.ones(2, requires_grad=True)
        y = a.exp()
        y.grad_fn.register_hook(lambda grads, outputs: see(*grads))
        y.backward(t.ones(2), inputs=[y])
        attempt(y.sum().backward, see)

    assert same(program)[0] == [None]


def test_mark_dirty_counts_a_write_that_is_not_recorded():
    def program(t, see):
        x = t.ones(2)
        see(doubled(t).apply(x) is x, x._version)

    assert same(program) == [[True, 2]]


def test_mark_dirty_on_a_leaf_under_no_grad_returns_a_detached_twin():
    def program(t, see):
        x = t.ones(2, requires_grad=True)
        with t.no_grad():
            y = doubled(t).apply(x)
        see(y is x, y.requires_grad, x.requires_grad, x)

    assert same(program) == [[False, False, True, [2.0, 2.0]]]


def test_mark_dirty_forgets_the_gradient_of_the_old_value():
    def program(t, see):
        y = t.ones(2, requires_grad=True) * 3
        y.retain_grad()
        y.backward(t.ones(2), retain_graph=True)
        doubled(t).apply(y)
        see(y.grad)
        y.sum().backward()
        see(y.grad)

    assert same(program) == [[None], [[1.0, 1.0]]]


def test_mark_dirty_on_a_view_goes_past_the_node_of_the_view():
    def program(t, see):
        x = t.ones(3, requires_grad=True)
        y = x * 3
        view = y[1:]
        view.grad_fn.register_prehook(lambda grads: see("the view's node"))
        doubled(t).apply(view)
        y.sum().backward()
        see(x.grad)

    assert same(program) == [[[3.0, 6.0, 6.0]]]


def test_a_retained_gradient_is_a_new_tensor_each_time():
    def program(t, see):
        y = t.ones(2, requires_grad=True) * 3
        y.retain_grad()
        y.backward(t.ones(2), retain_graph=True)
        first = y.grad
        y.backward(t.ones(2))
        see(first, y.grad)

    assert same(program) == [[[1.0, 1.0], [2.0, 2.0]]]


def test_in_place_forms_of_view_ops_have_names_of_their_own():
    def program(t, see):
        for act in (
            lambda y: y.transpose_(0, 1),
            lambda y: y.t_(),
            lambda y: y.squeeze_(),
            lambda y: y.squeeze_(0),
            lambda y: y.squeeze_((0, 1)),
            lambda y: y.unsqueeze_(0),
        ):
            y = t.ones(1, 3, requires_grad=True) * 1
            act(y)
            see(y.grad_fn.name(), tuple(y.shape))
            y.sum().backward()

    same(program)


def test_reshape_of_strided_memory_is_an_alias():
    def program(t, see):
        x = t.ones(4, 6, requires_grad=True)
        for y in (x.reshape(2, 12), x[:, :1].reshape(-1), x[::2].reshape(2, 2, 3), x.t().reshape(-1)):
            see(y.grad_fn.name(), y._is_view())

    same(program)


def test_assigning_one_value_to_a_whole_tensor_fills_it():
    def program(t, see):
        for value in (0.5, t.tensor(0.5), t.tensor(0.5, requires_grad=True)):
            y = t.ones(2, 3, requires_grad=True) * 1
            y[...] = value
            see(y.grad_fn.name())

    same(program)


def test_a_view_of_a_constant_base_may_be_written_to_while_recording():
    def program(t, see):
        base = t.ones(2, 3)
        with t.no_grad():
            view = base[0]
        attempt(lambda: view.mul_(2), see)
        attempt(lambda: view.mul_(t.ones(3, requires_grad=True)), see)
        leaf = t.ones(6).view(2, 3).requires_grad_()
        attempt(lambda: leaf.mul_(2), see)
        attempt(lambda: leaf[0].mul_(2), see)

    same(program)


def test_empty_expanded_tensors_may_be_written_to():
    def program(t, see):
        x = t.ones(0, 1).expand(0, 4)
        x.add_(1)
        see(tuple(x.shape), x._version)

    same(program)


def test_a_view_of_gapped_memory_differentiates_as_strided():
    def program(t, see):
        a = t.arange(12.0, dtype=t.float64).reshape(3, 4).requires_grad_()
        column = a[:, 1:]
        y = column.as_strided((3, 2), (4, 1), 1)
        (y * t.arange(6.0, dtype=t.float64).reshape(3, 2)).sum().backward()
        see(y, a.grad)

    same(program)


def test_data_of_an_inference_tensor_is_an_inference_tensor():
    def program(t, see):
        with t.inference_mode():
            x = t.ones(2)
        see(x.data.is_inference(), x.detach().is_inference())

    same(program)


def test_an_inference_tensor_that_need_not_be_saved_may_be_recorded():
    def program(t, see):
        with t.inference_mode():
            x = t.ones(2)
        w = t.ones(2, requires_grad=True)
        attempt(lambda: see((x + w).grad_fn.name()), see)
        attempt(lambda: x * w, see)
        attempt(lambda: t.atan2(t.ones(2, requires_grad=True) * 1, x), see)

    same(program)


def test_a_wrong_grad_is_refused_for_its_dtype_before_its_shape():
    def program(t, see):
        x = t.ones(3, requires_grad=True)

        def assign(value):
            x.grad = value

        attempt(lambda: assign(t.ones(2, dtype=t.float64)), see)
        attempt(lambda: assign(t.ones(2)), see)
        attempt(lambda: assign(t.ones(3, dtype=t.int64)), see)

    same(program)


def test_a_functions_gradient_is_checked_even_if_nothing_is_wanted_of_it():
    def program(t, see):
        class Wrong(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                return t.ones(7, 7)

        y = Wrong.apply(t.ones(2, requires_grad=True))
        attempt(lambda: y.sum().backward(inputs=[y]), see)

    same(program)


def test_the_view_that_was_written_to_gets_its_new_node_first():
    def program(t, see):
        base = t.ones(2, 2, requires_grad=True) * 1
        first, written = base[0], base[1]
        written.mul_(2)
        for name, view in (("first", first), ("written", written)):
            view.grad_fn.register_prehook(lambda grads, name=name: see(name))
        (first.sum() + written.sum()).backward()

    assert same(program) == [["first"], ["written"]]


def test_a_leaf_that_no_longer_requires_grad_still_calls_its_post_accumulate_hooks():
    def program(t, see):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        x.register_post_accumulate_grad_hook(lambda leaf: see(leaf.grad))
        x.requires_grad_(False)
        y.sum().backward()

    assert same(program) == [[None]]


def test_a_gradient_made_in_inference_mode_is_not_added_to():
    def program(t):
        x = t.ones(2, requires_grad=True)
        with t.inference_mode():
            x.grad = t.zeros(2)
        (x * 2).sum().backward()

    for t in (torch, backlight):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
            program(t)


@pytest.mark.parametrize(
    "index", [(..., slice(-1, None)), (slice(-3, 3), slice(None)), (..., slice(0, None)), (..., slice(-2, None))]
)
def test_a_full_slice_that_counts_from_the_end_has_a_node(index):
    def program(t, see):
        x = t.ones(3, 1, requires_grad=True)
        y = x[index]
        see(type(y.grad_fn).__name__, type((y * 1).sum().grad_fn.next_functions[0][0]).__name__)

    same(program)
