"""Forward mode: duals, levels, views and in-place ops, both mixed second derivatives, and PyTorch's texts."""

import threading
import warnings

import numpy as np
import pytest
import torch

import backlight
from backlight.autograd import forward_ad
from backlight.codegen import forward_mode
from backlight.codegen.declaration import LINEAR, MULTILINEAR, SYMMETRIC, TABLE
from cases import ALL

with warnings.catch_warnings():  # PyTorch's first make_dual imports this, which warns
    warnings.simplefilter("ignore")
    import torch._decomp.decompositions_for_jvp

FLOAT = backlight.float64


def vector(*numbers, **options):
    return backlight.tensor(numbers, dtype=FLOAT, **options)


def tangent_of(tensor):
    return forward_ad.unpack_dual(tensor).tangent


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


# --- duals and levels -------------------------------------------------------------------------------------------------


def test_a_tangent_goes_through_a_computation():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vector(1, 2, 3), vector(1, 0, -1))
        primal, tangent = forward_ad.unpack_dual((x * x).exp())
    values = np.array([1.0, 2, 3])
    same(primal, np.exp(values**2))
    same(tangent, 2 * values * np.exp(values**2) * np.array([1, 0, -1]))


def test_the_tangent_is_the_very_tensor_that_was_given():
    primal, tangent = vector(1, 2), vector(3, 4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        assert forward_ad.unpack_dual(dual).tangent is tangent
        assert forward_ad.unpack_dual(dual).primal.data_ptr() == primal.data_ptr()
        assert forward_ad.unpack_dual(primal).tangent is None


def test_at_the_end_of_its_level_a_tangent_is_gone():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        out = dual * 2
    assert tangent_of(dual) is None and tangent_of(out) is None
    with forward_ad.dual_level():
        assert tangent_of(dual) is None and tangent_of(dual + 1) is None


def test_a_level_may_decorate_a_function():
    @forward_ad.dual_level()
    def pushed(x, t):
        return tangent_of(forward_ad.make_dual(x, t).sin())

    same(pushed(vector(1.0), vector(2.0)), [2 * np.cos(1)])


def test_nested_levels_do_not_confuse_their_perturbations():
    x, one = vector(3.0), vector(1.0)
    with forward_mode.level() as outer:
        outside = outer.dual(x, one)
        with forward_mode.level() as inner:
            _, slope = inner.unpacked(outside + inner.dual(x, one))
        _, found = outer.unpacked(outside * slope)
    same(found, [1])  # d/dx (x · d/dy (x + y)) is 1; confused perturbations give 2


def test_three_levels_give_a_third_derivative():
    x, one = vector(2.0), vector(1.0)
    with forward_mode.level() as first, forward_mode.level() as second, forward_mode.level() as third:
        out = third.dual(second.dual(first.dual(x, one), one), one) ** 4
        _, slope = third.unpacked(out)
        _, curvature = second.unpacked(slope)
        _, found = first.unpacked(curvature)
    same(found, [24 * 2.0])


def test_another_thread_works_no_tangents_out():
    found = []
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
        assert tangent_of(found[0]) is None


# --- what switches it off ---------------------------------------------------------------------------------------------


def test_no_grad_leaves_forward_mode_on_and_inference_mode_does_not():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        with backlight.no_grad():
            same(tangent_of(x * 2), [6, 8])
        with backlight.inference_mode():
            out = x * 2
        assert tangent_of(out) is None


def test_forward_mode_may_be_switched_off():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        with forward_ad._set_fwd_grad_enabled(False):
            assert not forward_ad._is_fwd_grad_enabled()
            out = x * 2
            assert tangent_of(x) is None
        assert tangent_of(out) is None
        same(tangent_of(x), [3, 4])


def test_what_leaves_the_graph_leaves_the_tangent():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        assert tangent_of(x.detach()) is None and tangent_of(x.data) is None
        assert tangent_of(x.long()) is None and tangent_of(x.argmax()) is None and tangent_of(x > 1) is None
        assert tangent_of((x * 1).detach_()) is None
        same(tangent_of(x.clone()), [3, 4])
        assert tangent_of(x.float()).dtype is backlight.float32


def unpacked(m, made, dual):
    x, y = dual(made(3), made(3)), dual(made(2, 3), made(2, 3)).exp()
    primal = m.autograd.forward_ad.unpack_dual(y).primal
    of_view = m.autograd.forward_ad.unpack_dual(y[0]).primal
    return primal, primal[0], primal.t()[1:], *primal.unbind(0), primal * 2, of_view, primal * x, y


def write_to_an_unpacked_primal(m, made, dual):
    y = dual(made(2, 3), made(2, 3)) * 1
    primal = m.autograd.forward_ad.unpack_dual(y).primal
    primal.mul_(2)
    return primal, y, primal[0], y[0]


def write_duals_to_an_unpacked_primal(m, made, dual):
    x, y = dual(made(3), made(3)), dual(made(3), made(3)) * 1
    primal = m.autograd.forward_ad.unpack_dual(y).primal
    primal.mul_(x)
    return primal, y


@pytest.mark.parametrize(
    "program", [unpacked, write_to_an_unpacked_primal, write_duals_to_an_unpacked_primal], ids=lambda f: f.__name__
)
def test_an_unpacked_primal_carries_no_tangent(program):
    theirs, ours = run_both(program)
    for a, b in zip(theirs, ours, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(b, a, rtol=1e-12)


# --- views and in-place ops -------------------------------------------------------------------------------------------


def run_both(program):
    """Return what a program gives on PyTorch and on backlight: arrays, None."""
    found = []
    for module in (torch, backlight):
        forward = module.autograd.forward_ad
        rng = np.random.default_rng(0)

        def made(*shape, module=module, rng=rng):
            return module.tensor(rng.normal(size=shape).tolist(), dtype=module.float64)

        with forward.dual_level():
            results = program(module, made, forward.make_dual)
            unpacked = [part for one in results for part in forward.unpack_dual(one)]
        found.append([None if one is None else one.detach().numpy().copy() for one in unpacked])
    return found


def write_to_a_dual(m, made, dual):
    x = dual(made(2, 3), made(2, 3))
    row, y = x[0], x * 1
    x.mul_(3)
    y[0] = x[1]
    return x, row, y


def write_to_a_view_of_a_dual(m, made, dual):
    x = dual(made(2, 3), made(2, 3))
    column, turned = x[:, 1], x.t()
    column.exp_()
    turned[0].copy_(turned[1] * 2)
    return x, column, turned


def write_a_dual_into_constants(m, made, dual):
    whole = made(2, 3)
    before = whole[1]
    whole[:, 1:] = dual(made(2, 2), made(2, 2))
    return whole, before, whole.flatten()


def write_constants_into_a_dual(m, made, dual):
    x, y, z = (dual(made(2, 3), made(2, 3)) for _ in range(3))
    x.zero_()
    y[0].fill_(2.0)
    z[:, 0] = made(2)
    w = dual(made(2, 3), made(2, 3))
    w.normal_()
    w.fill_(0.0)
    return x, y, z, w


def write_where_indices_say(m, made, dual):
    x, y = dual(made(4), made(4)), made(4)
    places = m.tensor([2, 0])
    x[places] = made(2)
    y[places] = dual(made(2), made(2))
    x[m.tensor([True, False, False, True])] = dual(made(1), made(1))
    y[y > 0] = 7.0
    return x, y, y.index_add_(0, places, dual(made(2), made(2)))


def change_shape_in_place(m, made, dual):
    x, y = dual(made(2, 3), made(2, 3)), dual(made(3), made(3)) * 1
    y.unsqueeze_(0)
    return x.t_(), y, y.mul_(2)


def write_recorded(m, made, dual):
    x = dual(made(3).requires_grad_(), made(3))
    y = x * 2
    part = y[:2]
    part.mul_(x[:2])
    y.add_(1)
    return y, part


def write_the_same_memory_through_many_views(m, made, dual):
    x = dual(made(3, 4), made(3, 4)) * 1
    views = [x[1:], x.view(4, 3), x.t(), x[:, ::2], x.unsqueeze(1), x.diagonal()]
    for number, view in enumerate(views):
        view.mul_(number + 1)
        view.add_(x.mean())
    return x, *views


def expand_and_slice(m, made, dual):
    x = dual(made(3, 1), made(3, 1))
    return x.expand(3, 4), x.expand(3, 4)[1:].contiguous(), x.squeeze().as_strided((2, 2), (1, 1)), *x.unbind(0)


@pytest.mark.parametrize(
    "program",
    [
        write_to_a_dual,
        write_to_a_view_of_a_dual,
        write_a_dual_into_constants,
        write_constants_into_a_dual,
        write_where_indices_say,
        change_shape_in_place,
        write_recorded,
        write_the_same_memory_through_many_views,
        expand_and_slice,
    ],
)
def test_views_and_writes_are_pytorchs(program):
    theirs, ours = run_both(program)
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if program is write_constants_into_a_dual and number == 6:
            continue  # drawn
        assert (a is None) == (b is None), f"{'tangent' if number % 2 else 'primal'} {number // 2}: {a} against {b}"
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(number))


def test_a_view_s_tangent_is_a_view_of_the_tangent():
    tangent = backlight.ones(2, 3, dtype=FLOAT)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(backlight.zeros(2, 3, dtype=FLOAT), tangent)
        part = tangent_of(x[1, 1:])
        part.mul_(5)
    assert tangent.tolist() == [[1, 1, 1], [1, 5, 5]]


def test_a_write_to_a_dual_writes_to_the_tangent_given():
    tangent = vector(1, 1)
    with forward_ad.dual_level():
        forward_ad.make_dual(vector(1, 2), tangent).mul_(3)
    assert tangent.tolist() == [3, 3]


def test_dropout_drops_the_same_of_the_tangent():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(backlight.ones(100), backlight.ones(100))
        out, tangent = forward_ad.unpack_dual(backlight.nn.functional.dropout(x, 0.5))
    assert backlight.equal(out, tangent) and 0 < (out == 0).sum() < 100


# --- with reverse mode ------------------------------------------------------------------------------------------------


def mixed(module, order):
    """Return Hessian · t of a function of two tensors in one of the two mixed orders."""
    forward = module.autograd.forward_ad
    x, y, t, s = (
        module.tensor(numbers, dtype=module.float64)
        for numbers in ([0.3, -1.2, 2.0], [1.5, 0.4, -0.7], [1.0, 2.0, -1.0], [0.5, -3.0, 1.0])
    )
    x.requires_grad_(), y.requires_grad_()
    with forward.dual_level():
        a, b = forward.make_dual(x, t), forward.make_dual(y, s)
        out = ((a * b).sin() + (a**3).sum() * b.exp()).softmax(0).log().dot(b)
        if order == "reverse over forward":
            return module.autograd.grad(forward.unpack_dual(out).tangent, [x, y])
        gradients = module.autograd.grad(out, [a, b])
        return [forward.unpack_dual(one).tangent for one in gradients]


@pytest.mark.parametrize("order", ["reverse over forward", "forward over reverse"])
def test_mixed_second_derivatives_are_pytorchs(order):
    expected = mixed(torch, "forward over reverse")  # PyTorch's softmax cannot be differentiated the other way round
    for mine, theirs in zip(mixed(backlight, order), expected):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-10)


def test_backward_under_a_level_gives_plain_gradients():
    x = vector(1, 2, requires_grad=True)
    with forward_ad.dual_level():
        (forward_ad.make_dual(x, vector(1, 1)) ** 3).sum().backward()
        assert tangent_of(x.grad) is None
    assert x.grad.tolist() == [3, 12] and not x.grad.requires_grad


def test_what_hooks_packed_has_its_tangent_again():
    x = vector(1, 2, requires_grad=True)
    with (
        forward_ad.dual_level(),
        backlight.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), vector_of),
    ):
        dual = forward_ad.make_dual(x, vector(1, 1))
        (gradient,) = backlight.autograd.grad((dual**3).exp().sum(), dual)
        found = tangent_of(gradient)
    values = np.array([1.0, 2])
    same(found, (6 * values + 9 * values**4) * np.exp(values**3))


def vector_of(array):
    return backlight.from_numpy(array.copy())


def test_a_tangent_that_requires_grad_is_differentiated():
    x, t = vector(1, 2), vector(3, 4, requires_grad=True)
    with forward_ad.dual_level():
        out = tangent_of(forward_ad.make_dual(x, t) ** 2)
        (found,) = backlight.autograd.grad(out.sum(), t)
    same(found, [2, 4])


# --- custom Functions -------------------------------------------------------------------------------------------------


def function_of(m, forward, jvp, materialize=True):
    """Return a Function with a jvp."""

    class Custom(m.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.set_materialize_grads(materialize)
            return forward(ctx, *args)

        @staticmethod
        def backward(ctx, *grads):
            return grads[0]

    if jvp is not None:
        Custom.jvp = staticmethod(jvp)
    return Custom.apply


def doubled(ctx, x, *rest):
    ctx.save_for_forward(x)
    return x * 2


def two(ctx, x):
    return x * 2, x * 3


def with_a_constant(ctx, x):
    out, constant = x * 2, x * 3
    ctx.mark_non_differentiable(constant)
    return out, constant, x.argmax()


def changed(ctx, x):
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


FUNCTIONS = {
    "a product": (doubled, lambda ctx, t: t * 2),
    "what was saved": (doubled, lambda ctx, t: t * ctx.saved_tensors[0]),
    "no jvp": (doubled, None),
    "too many": (doubled, lambda ctx, t: (t, t)),
    "too few": (two, lambda ctx, t: t),
    "another shape": (doubled, lambda ctx, t: t[:2]),
    "no tensor": (doubled, lambda ctx, t: 3),
    "several": (two, lambda ctx, t: (t * 2, t * 3)),
    "a constant": (with_a_constant, lambda ctx, t: (t * 2, None, None)),
    "a tangent of a constant": (with_a_constant, lambda ctx, t: (t * 2, t, None)),
    "changed in place": (changed, lambda ctx, t: t.mul_(2)),
    "not changed in place": (changed, lambda ctx, t: t * 2),
    "a view": (lambda ctx, x: x.view(3, 1), lambda ctx, t: t.view(3, 1)),
    "no view": (lambda ctx, x: x.view(3, 1), lambda ctx, t: t.view(3, 1).clone()),
    "the input": (lambda ctx, x: x, lambda ctx, t: t.view_as(t)),
    "not the input": (lambda ctx, x: x, lambda ctx, t: t.clone()),
}


def result_of(m, forward, jvp):
    """Return what a Function gives for a dual: primals and tangents, or the error."""
    mode = m.autograd.forward_ad
    with mode.dual_level():
        primal, tangent = (m.tensor(numbers, dtype=m.float64) for numbers in ([1.0, 2, 3], [1.0, 0, -1]))
        dual = mode.make_dual(primal, tangent) * 1
        try:
            outs = function_of(m, forward, jvp)(dual)
        except RuntimeError as problem:
            return problem, None
        outs = outs if isinstance(outs, tuple) else (outs,)
        parts = [part for out in outs for part in mode.unpack_dual(out)]
        return None, [None if part is None else part.tolist() for part in parts]


@pytest.mark.parametrize(("forward", "jvp"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_s_jvp_does_what_pytorch_makes_it_do(forward, jvp):
    their_error, theirs = result_of(torch, forward, jvp)
    our_error, ours = result_of(backlight, forward, jvp)
    assert ours == theirs
    if their_error is not None:
        assert isinstance(our_error, type(their_error)) and str(our_error).startswith(str(their_error))


@pytest.mark.parametrize("materialize", [True, False])
def test_an_input_without_tangent_has_zeros_or_none(materialize):
    def jvp(ctx, first, number, second):
        assert number is None
        assert second.tolist() == [0, 0] if materialize else second is None
        return first * 2

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vector(1, 2), vector(3, 4))
        same(tangent_of(function_of(backlight, doubled, jvp, materialize)(dual, 5, vector(1, 1))), [6, 8])


def test_jvp_serves_each_of_several_levels():
    cube = function_of(backlight, doubled, lambda ctx, t: t * ctx.saved_tensors[0] ** 2)
    x, one = vector(3.0), vector(1.0)
    with forward_mode.level() as outer, forward_mode.level() as inner:
        out = cube(inner.dual(outer.dual(x, one), one))
        _, slope = inner.unpacked(out)
        same(outer.unpacked(out)[1], [9])
        same(outer.unpacked(slope)[1], [6])


def test_a_dual_is_printed_with_its_tangent():
    texts = []
    for m in (torch, backlight):
        with m.autograd.forward_ad.dual_level():
            x = m.autograd.forward_ad.make_dual(m.ones(3, requires_grad=True), m.arange(3.0))
            y = m.autograd.forward_ad.make_dual(m.ones(3), m.arange(3.0)).reshape(1, 3) * m.ones(2, 1)
            texts.append([repr(x), repr(y), repr(y.sum())])
    assert texts[0] == texts[1]


# --- the ways in which ops give tangents ------------------------------------------------------------------------------


def pushed(case, seed: int = 5):
    """Return the tangents that a Case's outputs have when all its differentiable inputs have one."""
    rng = np.random.default_rng(seed)
    values = case.tensors(backlight, requires_grad=True)
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(one.detach(), backlight.tensor(rng.normal(size=one.shape)))
            if one.requires_grad
            else one
            for one in values
        ]
        backlight.manual_seed(0)
        found = case.call(backlight, *duals)
        found = found if isinstance(found, (tuple, list)) else [found]
        return [tangent_of(one) for one in found if isinstance(one, backlight.Tensor)]


@pytest.mark.parametrize("case", [c for c in ALL if c.differentiable], ids=lambda case: case.name)
def test_what_an_op_says_of_its_tangents_follows_from_its_derivative(case, monkeypatch):
    found = pushed(case)
    for op in TABLE.values():
        if not op.view:
            monkeypatch.setattr(op, "tangents", {})
            monkeypatch.setattr(op, "tangent_form", None)
    for number, (a, b) in enumerate(zip(found, pushed(case))):
        assert (a is None) == (b is None), number
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


def test_most_ops_say_how_their_tangents_follow():
    differentiable = [op for op in TABLE.values() if op.rules]
    said = [op for op in differentiable if op.tangents or op.tangent_form in (LINEAR, MULTILINEAR, SYMMETRIC)]
    assert len(said) >= 0.75 * len(differentiable)


# --- PyTorch's texts --------------------------------------------------------------------------------------------------


def without_level(m):
    m.autograd.forward_ad.make_dual(m.ones(3), m.ones(3))


def other_shape(m):
    m.autograd.forward_ad.make_dual(m.ones(3), m.ones(2))


def integers(m):
    m.autograd.forward_ad.make_dual(m.ones(3, dtype=m.int64), m.ones(3))


def integer_tangent(m):
    m.autograd.forward_ad.make_dual(m.ones(3), m.ones(3, dtype=m.int64))


def no_tensor(m):
    m.autograd.forward_ad.make_dual(3, m.ones(3))


def no_tangent(m):
    m.autograd.forward_ad.make_dual(m.ones(3), 3)


def dual_of_a_dual(m):
    x = m.autograd.forward_ad.make_dual(m.ones(3), m.ones(3))
    m.autograd.forward_ad.make_dual(x, m.ones(3))


def tangent_that_is_dual(m):
    x = m.autograd.forward_ad.make_dual(m.ones(3), m.ones(3))
    m.autograd.forward_ad.make_dual(m.ones(3), x)


def nested(m):
    m.autograd.forward_ad.enter_dual_level()


def wrong_level(m):
    m.autograd.forward_ad.exit_dual_level(level=3)


def leaf_tangent_written(m):
    m.autograd.forward_ad.make_dual(m.ones(3), m.ones(3, requires_grad=True)).mul_(2)


@pytest.mark.parametrize(
    "mistake",
    [
        other_shape,
        integers,
        integer_tangent,
        no_tensor,
        no_tangent,
        dual_of_a_dual,
        tangent_that_is_dual,
        nested,
        wrong_level,
        leaf_tangent_written,
    ],
)
def test_mistakes_are_told_in_pytorchs_words(mistake):
    with torch.autograd.forward_ad.dual_level(), pytest.raises((RuntimeError, ValueError, AttributeError)) as theirs:
        mistake(torch)
    with forward_ad.dual_level(), pytest.raises(type(theirs.value)) as ours:
        mistake(backlight)
    assert str(ours.value).startswith(str(theirs.value).rstrip("."))


def test_a_dual_without_a_level_is_told_in_pytorchs_words():
    with pytest.raises(RuntimeError) as theirs:
        without_level(torch)
    with pytest.raises(RuntimeError) as ours:
        without_level(backlight)
    assert str(ours.value).startswith(str(theirs.value))


def into_out(m, x, square):
    m.sin(x, out=m.zeros(3))


def dual_as_out(m, x, square):
    m.mm(m.ones(3, 3), m.ones(3, 3), out=square)


def distinct(m, x, square):
    m.unique(x)


def distinct_rows(m, x, square):
    m.unique(square, dim=0)


def runs(m, x, square):
    m.unique_consecutive(x)


def step(m, x, square):
    m.heaviside(x, x)


def floored(m, x, square):
    m.floor_divide(x, 2)


def reflectors(m, x, square):
    m.geqrf(square)


def symmetric_factor(m, x, square):
    m.linalg.ldl_factor_ex(square)


@pytest.mark.parametrize(
    "call",
    [into_out, dual_as_out, distinct, distinct_rows, runs, step, floored, reflectors, symmetric_factor],
)
def test_what_has_no_tangent_is_refused_in_pytorchs_words(call):
    said = []
    for m in (torch, backlight):
        forward = m.autograd.forward_ad
        with forward.dual_level(), pytest.raises(NotImplementedError) as problem:
            x = forward.make_dual(m.tensor([3.0, 1.0, 2.0]), m.ones(3))
            call(m, x, forward.make_dual(m.eye(3) * 2, m.ones(3, 3)))
        said.append(str(problem.value).split("\n")[0])
    assert said[1].startswith(said[0])
    for m in (torch, backlight):
        x = m.tensor([3.0, 1.0, 2.0])
        with m.autograd.forward_ad.dual_level():  # nothing has a tangent
            assert m.sin(x, out=m.zeros(3)).shape == x.shape
            assert m.unique(x).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "function",
    ["x.argmax()", "x > 1", "x.signbit()", "x.nonzero()", "m.bucketize(x, x)", "m.histc(x)", "x.long()"],
)
def test_what_only_tells_places_and_counts_has_no_tangent(function):
    for m in (torch, backlight):
        forward = m.autograd.forward_ad
        with forward.dual_level():
            x = forward.make_dual(m.tensor([3.0, 1.0, 2.0]), m.ones(3))
            assert forward.unpack_dual(eval(function, {"m": m, "x": x})).tangent is None
