"""Programs that keep graphs of gradients, and which of them Python's collector must free."""

import backlight
from backlight import func
from backlight.autograd import Function, forward_ad, grad
from backlight.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from backlight.utils.checkpoint import checkpoint


class Exp(Function):
    """Saves its output as it should be saved."""

    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1]


class ExpOfAttribute(Function):
    """Keeps its output as an attribute: a cycle, here and in PyTorch."""

    @staticmethod
    def forward(ctx, x):
        ctx.out = x.exp()
        return ctx.out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.out


class Fails(Function):
    """Fails in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ZeroDivisionError


def fail(*_):
    raise ZeroDivisionError


def expect_failure(call) -> None:
    try:
        call()
    except ZeroDivisionError:
        return
    raise AssertionError("it did not fail")


def gradient_penalty(w):
    """One step of WGAN-GP."""
    x = backlight.ones(4, 3, requires_grad=True)
    score = (x @ w).tanh()
    (slope,) = grad(score.sum(), x, create_graph=True)
    (((slope.norm(2, dim=1) - 1) ** 2).mean() + score.mean()).backward()


def adapted(w):
    """One step of MAML: three inner steps, differentiated through."""
    inner = w
    for _ in range(3):
        (slope,) = grad((inner**3).sum(), inner, create_graph=True)
        inner = inner - 0.1 * slope
    (inner * inner).sum().backward()


def penalty_by_backward(w, clear):
    (w * w).exp().sum().backward(create_graph=True)
    slope = w.grad
    clear(w)
    (slope * slope).sum().backward()


def zero_grad(w):
    backlight.optim.SGD([w], lr=0.1).zero_grad()


def none(w):
    w.grad = None


def third_derivative(w):
    slope = (w**4).sum()
    for _ in range(3):
        (slope,) = grad(slope.sum(), w, create_graph=True)


def leaf_whose_accumulator_has_a_hook(w):
    leaf = backlight.ones(3, 3, requires_grad=True)
    y = leaf * w
    y.grad_fn.next_functions[0][0].register_hook(lambda grads, incoming: None)
    y.sum().backward()


def hook_of_several(w, mode, hook=lambda grads: None):
    a, b = w * w, w.exp()
    register_multi_grad_hook([a, b], hook, mode=mode)
    (a * b).sum().backward()


def hook_that_fails(w):
    h = w.exp()
    h.register_hook(fail)
    expect_failure((h * h).sum().backward)


def forward_that_fails(w):
    def program():
        y = (w * w).exp()
        fail(y)

    expect_failure(program)


def packed(w, pack=lambda saved: saved.detach(), unpack=lambda held: held):
    with saved_tensors_hooks(pack, unpack):
        y = (w * w).exp().sin()
    y.sum().backward()


def function_of(w, of):
    y = of.apply(w * 1)
    (slope,) = grad((y * y).sum(), w, create_graph=True)
    grad(slope.sum(), w)


def checkpointed(w, reentrant):
    checkpoint(lambda x: (x * x).exp().sin(), w, use_reentrant=reentrant).sum().backward()


def checkpoint_differentiated_twice(w):
    (slope,) = grad(checkpoint(lambda x: x.exp().sin(), w, use_reentrant=False).sum(), w, create_graph=True)
    grad(slope.sum(), w)


def checkpoint_that_fails_the_second_time(w):
    calls = []

    def program(x):
        calls.append(len(calls))
        y = x.exp()
        return fail() if len(calls) == 2 else y.sin()

    expect_failure(checkpoint(program, w, use_reentrant=False).sum().backward)


def gradient_that_fails_in_func(w):
    expect_failure(lambda: func.grad(lambda x: fail(x.exp()))(w.detach()))
    expect_failure(lambda: func.vmap(lambda x: fail(x.exp()))(w.detach()))


def tangents(w):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(w, backlight.ones(3, 3))
        forward_ad.unpack_dual((dual * dual).exp()).tangent.sum().backward()


def tangents_that_fail(w):
    def program():
        with forward_ad.dual_level():
            fail((forward_ad.make_dual(w.detach(), backlight.ones(3, 3)) * w).exp())

    expect_failure(program)


def written_in_place(w):
    h = w * 2
    h[1:3].mul_(3)
    h.view(-1)[:4].exp_()
    (_slope,) = grad((h * h).sum(), w, create_graph=True)


def watched(w):
    with backlight.lens.watch():
        (_slope,) = grad((w * w).exp().sum(), w, create_graph=True)


def in_anomaly_mode(w):
    with backlight.autograd.detect_anomaly():
        (slope,) = grad((w * w).sum(), w, create_graph=True)
        expect_failure(Fails.apply(slope).sum().backward)


DIE_BY_REFERENCE_COUNT = {
    "gradient penalty": gradient_penalty,
    "inner steps differentiated": adapted,
    "third derivative": third_derivative,
    "backward with create_graph, then None": lambda w: penalty_by_backward(w, none),
    "backward with create_graph, then zero_grad": lambda w: penalty_by_backward(w, zero_grad),
    "hook of an accumulator": leaf_whose_accumulator_has_a_hook,
    "hook of all of several": lambda w: hook_of_several(w, "all"),
    "hook of any of several": lambda w: hook_of_several(w, "any"),
    "hook that fails": hook_that_fails,
    "hook of several that fails": lambda w: expect_failure(lambda: hook_of_several(w, "all", fail)),
    "function": lambda w: function_of(w, Exp),
    "function never run": lambda w: Exp.apply(w),
    "function that fails": lambda w: expect_failure((Fails.apply(w * 1) * w).sum().backward),
    "function that fails, recorded": lambda w: expect_failure(lambda: function_of(w, Fails)),
    "forward that fails": forward_that_fails,
    "saved tensors' hooks": packed,
    "saved tensors' hooks that keep all": lambda w: packed(w, lambda saved: saved),
    "pack hook that fails": lambda w: expect_failure(lambda: packed(w, fail)),
    "unpack hook that fails": lambda w: expect_failure(lambda: packed(w, unpack=fail)),
    "checkpoint": lambda w: checkpointed(w, False),
    "reentrant checkpoint": lambda w: checkpointed(w, True),
    "checkpoint never run": lambda w: checkpoint(backlight.exp, w, use_reentrant=False),
    "checkpoint differentiated twice": checkpoint_differentiated_twice,
    "checkpoint that fails": checkpoint_that_fails_the_second_time,
    "func.grad of func.grad": lambda w: func.grad(lambda x: func.grad(lambda y: (y**3).sum())(x).sum())(w.detach()),
    "func.vjp": lambda w: func.vjp(lambda x: (x * x).exp(), w.detach())[1](w.detach()),
    "func.jvp of func.grad": lambda w: func.jvp(func.grad(lambda x: (x**3).sum()), (w.detach(),), (w.detach(),)),
    "func.vmap over a leaf": lambda w: func.vmap(lambda x: (x * x).exp())(w).sum().backward(),
    "func.jacrev": lambda w: func.jacrev(lambda x: (x * x).sum(0))(w.detach()),
    "func that fails": gradient_that_fails_in_func,
    "forward mode": tangents,
    "forward mode that fails": tangents_that_fail,
    "in-place writes to views": written_in_place,
    "watched by the lens": watched,
    "anomaly mode": in_anomaly_mode,
}


def leaf_with_create_graph(w):
    leaf = backlight.ones(3, 3, requires_grad=True)
    (leaf * w).exp().sum().backward(create_graph=True)


def hook_that_holds_its_tensor(w):
    h = w.exp()
    h.register_hook(lambda grad: grad * h.detach())
    h.sum().backward()


def hook_that_holds_its_node(w):
    node = w.exp().grad_fn
    node.register_hook(lambda grads, incoming: node.name() and None)


def accumulator_that_holds_itself(w):
    end = (backlight.ones(3, 3, requires_grad=True) * w).grad_fn.next_functions[0][0]
    end.register_hook(lambda grads, incoming: end.name() and None)


def metadata_that_holds_the_output(w):
    h = w.exp()
    h.grad_fn.metadata["output"] = h


def grad_that_holds_its_leaf(w):
    leaf = backlight.ones(3, 3, requires_grad=True)
    leaf.grad = leaf * w


def keep_error(w):
    try:
        (Fails.apply(w * 1) * w).sum().backward()
    except ZeroDivisionError as problem:
        kept = problem  # in the frame that its traceback holds
        assert kept.__traceback__ is not None


NEED_THE_COLLECTOR = {
    "leaf whose grad has its graph": leaf_with_create_graph,
    "leaf whose grad is computed from it": grad_that_holds_its_leaf,
    "hook that holds its tensor": hook_that_holds_its_tensor,
    "hook that holds its node": hook_that_holds_its_node,
    "hook that holds its accumulator": accumulator_that_holds_itself,
    "metadata that holds the output": metadata_that_holds_the_output,
    "function that keeps its output as an attribute": lambda w: ExpOfAttribute.apply(w * 1),
    "pack hook that keeps an op's own output": lambda w: packed(w * 1, lambda saved: saved),
    "error that its own frame keeps": keep_error,
}
