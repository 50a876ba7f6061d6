"""Custom Functions that return inputs, leaves, views, nothing, or undefined gradients."""

import warnings

import torch
from said import attempt
from torch.autograd import Function

warnings.simplefilter("ignore")


def made(forward, backward=lambda ctx, *g: g, name="Own"):
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


x = torch.tensor([1.0, 2.0], requires_grad=True)


def used(kind, *inputs):
    out = kind.apply(*inputs)
    parts = out if isinstance(out, tuple) else (out,)
    x.grad = None
    sum(part.sum() for part in parts).backward()
    return [type(part.grad_fn).__name__ for part in parts], [part is inputs[0] for part in parts], x.grad


attempt("input", lambda: used(made(lambda ctx, a: a), x))
attempt("input of an op", lambda: used(made(lambda ctx, a: a), x * 1))
attempt("input twice", lambda: used(made(lambda ctx, a: (a, a), lambda ctx, g, h: g + h), x))
attempt("a view", lambda: used(made(lambda ctx, a: a[:1], lambda ctx, g: torch.cat([g, g])), x))
leaf = torch.ones(2, requires_grad=True)
attempt("a leaf", lambda: used(made(lambda ctx, a: leaf), x))
attempt("none", lambda: made(lambda ctx, a: None).apply(x))
attempt("a number", lambda: made(lambda ctx, a: 3).apply(x))
attempt("mixed", lambda: made(lambda ctx, a: (a * 2, 3, None)).apply(x)[1:])


def dirty(ctx, a):
    ctx.mark_dirty(a)
    return a.mul_(2)


attempt("dirty leaf", lambda: used(made(dirty), x))
attempt("dirty", lambda: used(made(dirty), x * 1))


def dirty_not_returned(ctx, a):
    ctx.mark_dirty(a)
    return a * 2


attempt("dirty, not returned", lambda: used(made(dirty_not_returned), x * 1))
attempt("dirty view", lambda: used(made(dirty), (x * 1)[:1]))
attempt(
    "dirty and two outputs",
    lambda: used(made(lambda ctx, a: (dirty(ctx, a), a.detach() + 1), lambda ctx, g, h: g), (x * 1)),
)


def not_differentiable(ctx, a):
    out = a * 2
    ctx.mark_non_differentiable(out)
    return out


attempt("not differentiable", lambda: made(not_differentiable).apply(x).requires_grad)
attempt("None back", lambda: used(made(lambda ctx, a: a * 2, lambda ctx, g: None), x))
attempt("too many back", lambda: used(made(lambda ctx, a: a * 2, lambda ctx, g: (g, g)), x))
attempt("too many None back", lambda: used(made(lambda ctx, a: a * 2, lambda ctx, g: (g, None)), x))
attempt("too few back", lambda: used(made(lambda ctx, a, b: a * b, lambda ctx, g: g), x, x))
attempt("wrong shape back", lambda: used(made(lambda ctx, a: a * 2, lambda ctx, g: g[:1].expand(3)), x))
attempt("number back", lambda: used(made(lambda ctx, a: a * 2, lambda ctx, g: 3.0), x))


def two(ctx, a):
    return a * 2, a * 3


def seen(ctx, g, h):
    print("undefined:", g is None, h is None)
    return g if g is not None else h


def no_zeros(ctx, a):
    ctx.set_materialize_grads(False)
    return a * 2, a * 3


attempt("undefined materialized", lambda: made(two, seen).apply(x)[0].sum().backward())
attempt("undefined kept", lambda: made(no_zeros, seen).apply(x)[0].sum().backward())
attempt(
    "no backward",
    lambda: type("Own", (Function,), {"forward": staticmethod(lambda ctx, a: a * 2)}).apply(x).sum().backward(),
)
attempt("no forward", lambda: type("Own", (Function,), {}).apply(x))
attempt("instance", lambda: made(two)()(x))
attempt(
    "save twice",
    lambda: used(
        made(
            lambda ctx, a: ctx.save_for_backward(a) or ctx.save_for_backward(a * 2) or a * 2,
            lambda ctx, g: g * len(ctx.saved_tensors),
        ),
        x,
    ),
)
attempt("save number", lambda: made(lambda ctx, a: ctx.save_for_backward(3) or a).apply(x))
