"""Custom Functions inside vmap: rules that they bring, rules that are made for them, and errors in PyTorch's words."""

import numpy as np
import pytest
import torch

import backlight
from backlight.transforms.pytrees import tree_leaves

X, W = np.random.default_rng(0).normal(size=(5, 3)), np.random.default_rng(1).normal(size=3)


def functions(m):
    class Base(m.autograd.Function):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:2], output if not isinstance(output, tuple) else output[0])

    class Made(Base):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, w, power):
            return (x * w).sin() ** power

        @staticmethod
        def backward(ctx, grad):
            x, w, _ = ctx.saved_tensors
            inner = grad * 2 * (x * w).sin() * (x * w).cos()
            return inner * w, inner * x, None

    class Own(Base):
        @staticmethod
        def forward(x, w):
            return x * w, x + w

        @staticmethod
        def backward(ctx, first, second):
            x, w, _ = ctx.saved_tensors
            return first * w + second, first * x + second

        @staticmethod
        def vmap(info, in_dims, x, w):
            assert info.batch_size == 5
            assert info.randomness == "error"
            assert in_dims == (0, None)
            return Own.apply(x, w.expand(x.shape)), (0, 0)

    class Old(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    class Neither(Base):
        forward = staticmethod(lambda x: x)

    class Twofold(Own):
        generate_vmap_rule = True

    class Single(Base):
        forward = staticmethod(lambda x: x)
        vmap = staticmethod(lambda info, in_dims, x: x)

    return {one.__name__: one for one in (Made, Own, Old, Neither, Twofold, Single)}


def on_both(program):
    found = []
    for m, vmap in ((torch, torch.func.vmap), (backlight, backlight.vmap)):
        x, w = m.from_numpy(X.copy()).requires_grad_(), m.from_numpy(W.copy()).requires_grad_()
        found.append([one.detach().numpy() for one in program(m, vmap, functions(m), x, w)])
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs)


def test_a_rule_may_be_made_of_forward_and_backward():
    def program(m, vmap, known, x, w):
        out = vmap(lambda one: known["Made"].apply(one, w, 2))(x)
        first = m.autograd.grad(out.sum(), (x, w), create_graph=True)
        return out, *first, *m.autograd.grad((first[0] ** 2).sum() + (first[1] ** 2).sum(), (x, w))

    on_both(program)


def test_made_rules_nest_and_give_gradients_of_each_example():
    def program(m, vmap, known, x, w):
        grad = (backlight.func if m is backlight else torch.func).grad
        each = vmap(grad(lambda v, one: known["Made"].apply(one, v, 2).sum()), in_dims=(None, 0))(w, x)
        pairs = vmap(lambda a: vmap(lambda b: known["Made"].apply(a, b, 2))(x))(x)
        return each, pairs, *m.autograd.grad(pairs.sum(), x)

    on_both(program)


def test_a_function_may_bring_its_rule():
    def program(m, vmap, known, x, w):
        product, total = vmap(lambda one: known["Own"].apply(one, w))(x)
        return product, total, *m.autograd.grad(product.sum() + (total * 2).sum(), (x, w))

    on_both(program)


@pytest.mark.parametrize("name", ["Old", "Neither", "Twofold", "Single"])
def test_missing_rules_are_told_in_pytorchs_words(name):
    found = []
    for m, vmap in ((torch, torch.func.vmap), (backlight, backlight.vmap)):
        with pytest.raises(RuntimeError) as problem:
            x = m.from_numpy(X)
            vmap(functions(m)[name].apply)(*((x, x) if name == "Twofold" else (x,)))
        found.append(" ".join(str(problem.value).split()))
    assert found[1].startswith(found[0][:132])


# --- forward mode ----------------------------------------------------------------------------------------------------


def with_jvp(m):
    class Pushed(m.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, w):
            return x * x * w, (x * w).sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, first, second):
            x, w = ctx.saved_tensors
            return 2 * x * w * first + w * second, x * x * first + x * second

        @staticmethod
        def jvp(ctx, x_tangent, w_tangent):
            x, w = ctx.saved_tensors
            return 2 * x * w * x_tangent + x * x * w_tangent, (w * x_tangent + x * w_tangent).sum()

    return Pushed.apply


FORWARD = {
    "jacfwd": lambda f, apply, x, w: f.jacfwd(apply)(x[0], w),
    "jacfwd for both": lambda f, apply, x, w: f.jacfwd(apply, argnums=(0, 1))(x[0], w),
    "hessian": lambda f, apply, x, w: f.hessian(lambda a: apply(a, w)[0].sum())(x[0]),
    "jacfwd of grad": lambda f, apply, x, w: f.jacfwd(f.grad(lambda a: apply(a, w)[1] ** 2))(x[0]),
    "vmap of jvp": lambda f, apply, x, w: f.vmap(lambda a: f.jvp(apply, (a, w), (a, w * 3)))(x),
    "jvp of vmap": lambda f, apply, x, w: f.jvp(lambda a: f.vmap(lambda b: apply(b, w))(a), (x,), (x + 1,)),
    "vmap of jacfwd": lambda f, apply, x, w: f.vmap(f.jacfwd(apply), in_dims=(0, None))(x, w),
    "vmap of jacfwd of grad": lambda f, apply, x, w: f.vmap(f.jacfwd(f.grad(lambda a: apply(a, w)[0].sum())))(x),
}


@pytest.mark.parametrize("name", FORWARD)
def test_a_made_rule_runs_the_function_s_own_jvp_on_batches(name):
    found = []
    for m in (torch, backlight):
        out = FORWARD[name](m.func, with_jvp(m), m.from_numpy(X), m.from_numpy(W))
        found.append(tree_leaves(out))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12)


def test_a_made_rule_s_jvp_is_itself_differentiated():
    x, w = backlight.from_numpy(X[0]), backlight.from_numpy(W)
    apply, func = with_jvp(backlight), backlight.func
    second = func.jacfwd(func.jacfwd(lambda a: apply(a, w)[0].sum()))(x)
    np.testing.assert_allclose(second.numpy(), np.diag(2 * W), rtol=1e-12)
