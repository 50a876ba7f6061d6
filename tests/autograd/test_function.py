"""Function: a backward of the user's own. Each snippet is run on PyTorch too."""

import gc
import weakref

import pytest
import torch
from snippets import assert_shows_the_same

import backlight
from backlight.autograd import Function, gradcheck, gradgradcheck

SQUARE = """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *rest):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad
w = torch.tensor([2., 3.], requires_grad=True)
"""

PARTS = """
class Parts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, y=None):
        ctx.factor = factor
        print(ctx.needs_input_grad, ctx.saved_tensors, torch.is_grad_enabled())
        return x * factor, x + 1
    @staticmethod
    def backward(ctx, first, second):
        print(first, second, ctx.needs_input_grad, torch.is_grad_enabled())
        return first * ctx.factor + second, None, None
w = torch.tensor([2., 3.], requires_grad=True)
"""

TEMPLATE = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *rest):
        {forward}
    @staticmethod
    def backward(ctx, *grads):
        {backward}
w = torch.ones(3, requires_grad=True)
h = w * 1
"""


def template(forward="return x * 2", backward="return grads[0] * 2", then=""):
    return TEMPLATE.format(forward=forward, backward=backward) + then


SNIPPETS = {
    "gradient": SQUARE + "Square.apply(w).sum().backward(); print(w.grad)",
    "twice on one leaf": SQUARE + "(Square.apply(w) + Square.apply(w)).sum().backward(); print(w.grad)",
    "composed": SQUARE + "Square.apply(Square.apply(w)).sum().backward(); print(w.grad)",
    "name": SQUARE + "y = Square.apply(w); print(y, y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn)",
    "face of the node": SQUARE
    + "n = Square.apply(w).grad_fn; print(n.next_functions, n.saved_tensors, n.needs_input_grad, n.metadata)",
    "attributes of ctx are the node's": PARTS
    + "a, b = Parts.apply(w, 5.); print(a.grad_fn.factor, a.grad_fn is b.grad_fn)",
    "several outputs": PARTS + "a, b = Parts.apply(w, 5.); print(b.output_nr); (a * b).sum().backward(); print(w.grad)",
    "one of several outputs": PARTS + "a, b = Parts.apply(w, 5.); b.sum().backward(); print(w.grad)",
    "keyword arguments find their places": PARTS + "Parts.apply(factor=5., x=w)[0].sum().backward(); print(w.grad)",
    "a keyword given twice": PARTS + "Parts.apply(w, 5., x=w)",
    "too few arguments": PARTS + "Parts.apply()",
    "tensors anywhere among the arguments": template(
        "return rest[1] * x * rest[2]",
        "return None, None, grads[0], None",
        "v = torch.ones(3, requires_grad=True)\n"
        "F.apply(w.detach(), 'a', v, 3.).sum().backward(); print(v.grad, w.grad)",
    ),
    "a tensor without gradient has no edge": template(
        then="n = F.apply(w, torch.ones(3), 4).grad_fn; print([edge[0] is None for edge in n.next_functions])"
    ),
    "nothing is recorded without gradients": template(then="print(F.apply(torch.ones(3)))"),
    "nothing is recorded under no_grad": template(then="with torch.no_grad():\n    print(F.apply(w))"),
    "run again after it was freed": SQUARE + "y = Square.apply(w).sum(); y.backward(); y.backward()",
    "run again with retain_graph": SQUARE
    + "y = Square.apply(w).sum(); y.backward(retain_graph=True); y.backward(); print(w.grad)",
    "run again when nothing was saved": template(
        then="y = F.apply(w).sum(); y.backward(); y.backward(); print(w.grad)"
    ),
    "saved tensors read after they were freed": SQUARE
    + "y = Square.apply(w); y.sum().backward(); y.grad_fn.saved_tensors",
    "a saved input was modified": SQUARE + "h = w * 1; y = Square.apply(h); h.mul_(2); y.sum().backward()",
    "a saved output was modified": template(
        "y = x.exp(); ctx.save_for_backward(y); return y",
        "return grads[0] * ctx.saved_tensors[0]",
        "y = F.apply(w); y.mul_(2); y.sum().backward()",
    ),
    "a saved intermediate": template(
        "y = x.exp(); ctx.save_for_backward(y); return y * 2",
        "return grads[0] * ctx.saved_tensors[0] * 2",
        "F.apply(w).sum().backward(); print(w.grad)",
    ),
    "None can be saved": template(
        "ctx.save_for_backward(None, x); return x * 2",
        "print(ctx.saved_tensors); return grads[0] * 2",
        "F.apply(w).sum().backward(); print(w.grad)",
    ),
    "only tensors can be saved": template("ctx.save_for_backward(x, 3); return x * 2", then="F.apply(w)"),
    "save_for_forward is kept": template(
        "ctx.save_for_forward(x); print(ctx.saved_for_forward); return x * 2", then="F.apply(w)"
    ),
    "a gradient of another shape": template(
        backward="return grads[0].sum().expand(5)", then="F.apply(w).sum().backward()"
    ),
    "a gradient of fewer dims": template(backward="return grads[0].sum()", then="F.apply(w).sum().backward()"),
    "a gradient that broadcasting made larger": template(
        backward="return grads[0].expand(4, 3)", then="F.apply(w).sum().backward(); print(w.grad)"
    ),
    "a gradient of another dtype": template(
        backward="return grads[0].double()", then="F.apply(w).sum().backward(); print(w.grad)"
    ),
    "too few gradients": template(then="F.apply(w, w).sum().backward()"),
    "too many gradients": template(backward="return grads[0], grads[0]", then="F.apply(w).sum().backward()"),
    "too many gradients, all None": template(
        backward="return grads[0], None, None", then="F.apply(w).sum().backward(); print(w.grad)"
    ),
    "a gradient for a number": template(backward="return grads[0], grads[0]", then="F.apply(w, 3).sum().backward()"),
    "a gradient that is no tensor": template(backward="return 3.", then="F.apply(w).sum().backward()"),
    "no gradient at all": template(backward="return None", then="F.apply(w).sum().backward(); print(w.grad)"),
    "outputs that are no tensors": template(
        "return x * 2, 7, None, 'a', x * 3",
        "print(grads); return grads[0] * 2 + grads[4] * 3",
        "y = F.apply(w); print(y, y[4].output_nr); y[4].sum().backward(); print(w.grad)",
    ),
    "a tuple of one": template("return (x * 2,)", then="print(F.apply(w))"),
    "a list is no tuple": template("return [x * 2]", then="print(F.apply(w))"),
    "an integer output": template("return x.long(), x * 2", "print(grads); return grads[1]", "print(F.apply(w))"),
    "the same output twice": template(
        "y = x * 2; return y, y",
        "print(grads); return grads[1]",
        "a, b = F.apply(w); print(a is b); b.sum().backward()",
    ),
    "materialized zeros": template(
        "return x * 2, x * 3", "print(grads); return grads[1]", "F.apply(w)[1].sum().backward()"
    ),
    "no materialized zeros": template(
        "ctx.set_materialize_grads(False); return x * 2, x * 3",
        "print(grads); return grads[1]",
        "F.apply(w)[1].sum().backward(); print(w.grad)",
    ),
    "a branch without gradient gets zeros": template(
        backward="print(grads); return grads[0]",
        then=(
            "class Stop(F):\n    @staticmethod\n    def backward(ctx, grad):\n        return None\n"
            "Stop.apply(F.apply(w)).sum().backward(); print(w.grad)"
        ),
    ),
    "marked not differentiable": template(
        "y = x * 3; ctx.mark_non_differentiable(y); return x * 2, y",
        "print(grads); return grads[0]",
        "a, b = F.apply(w); print(a, b); a.sum().backward(); print(w.grad)",
    ),
    "an input marked not differentiable": template(
        "ctx.mark_non_differentiable(x); return x", then="y = F.apply(w); print(y, y is w, w.requires_grad)"
    ),
    "marks must be tensors": template("ctx.mark_non_differentiable(3); return x * 2", then="F.apply(w)"),
    "marked dirty": template(
        "x.mul_(2); ctx.mark_dirty(x); return x",
        then="y = F.apply(h); print(y is h, h.grad_fn, h._version); (h * h).sum().backward(); print(w.grad)",
    ),
    "a dirty leaf": template("x.mul_(2); ctx.mark_dirty(x); return x", then="F.apply(w)"),
    "a dirty view": template(
        "x.mul_(2); ctx.mark_dirty(x); return x",
        then="v = h[:2]; y = F.apply(v); print(y is v, v.grad_fn, h.grad_fn); h.sum().backward(); print(w.grad)",
    ),
    "a dirty view of a leaf": template("x.mul_(2); ctx.mark_dirty(x); return x", then="F.apply(w[:2])"),
    "a dirty view that is a leaf": template(
        "x.mul_(2); ctx.mark_dirty(x); return x", then="with torch.no_grad(): v = h[:2]\nF.apply(v.requires_grad_())"
    ),
    "a dirty tensor that is not returned": template("x.mul_(2); ctx.mark_dirty(x); return x * 2", then="F.apply(h)"),
    "dirty marks must be tensors": template("ctx.mark_dirty(3); return x * 2", then="F.apply(w)"),
    "a dirty saved tensor": template(
        "x.exp_(); ctx.mark_dirty(x); ctx.save_for_backward(x); return x",
        "return grads[0] * ctx.saved_tensors[0]",
        "F.apply(h).sum().backward(); print(w.grad)",
    ),
    "a dirty tensor saved by another": template(
        "x.mul_(2); ctx.mark_dirty(x); return x", then="y = h * h; F.apply(h); y.sum().backward()"
    ),
    "an input returned as it is": template(
        "return x", then="y = F.apply(h); print(y is h, y._base is h, y.grad_fn); y.sum().backward(); print(w.grad)"
    ),
    "an input returned without gradient": template(
        "return x", then="t = torch.ones(2); y = F.apply(t); print(y is t, y._base is t, y.grad_fn)"
    ),
    "an input returned, then written": template("return x", then="F.apply(h).mul_(2)"),
    "a view of an input, then written": template("return x.view(3, 1)", then="F.apply(h).mul_(2)"),
    "a view of a leaf, then written": template("return x.view(3, 1)", then="F.apply(w).mul_(2)"),
    "one of several views, then written": template("return x.view(3), x[0]", then="F.apply(h)[1].mul_(2)"),
    "double backward": SQUARE
    + "(g,) = torch.autograd.grad(Square.apply(w).sum(), w, create_graph=True); print(g)\n"
    + "print(torch.autograd.grad((g * g).sum(), w))",
    "double backward through a saved output": template(
        "y = x.exp(); ctx.save_for_backward(y); return y",
        "return grads[0] * ctx.saved_tensors[0]",
        "(g,) = torch.autograd.grad((F.apply(w) * 2).sum(), w, create_graph=True)\n"
        "print(torch.autograd.grad(g.sum(), w))",
    ),
    "create_graph sees grad mode": template(
        backward="print(torch.is_grad_enabled(), grads[0].requires_grad); return grads[0] * 2",
        then="y = (F.apply(w) * w).sum(); torch.autograd.grad(y, w, create_graph=True); torch.autograd.grad(y, w)",
    ),
    "once differentiable, differentiated twice": template(
        then=(
            "class Once(F):\n    @staticmethod\n    @torch.autograd.function.once_differentiable\n"
            "    def backward(ctx, grad):\n        print(torch.is_grad_enabled()); return grad * 2\n"
            "(g,) = torch.autograd.grad((Once.apply(w) * w).sum(), w, create_graph=True); print(g); g.sum().backward()"
        ),
    ),
    "once differentiable, and its gradient is constant": template(
        then=(
            "class Once(F):\n    @staticmethod\n    @torch.autograd.function.once_differentiable\n"
            "    def backward(ctx, grad):\n        return grad * 2\n"
            "(g,) = torch.autograd.grad(Once.apply(w).sum(), w, create_graph=True); g.sum().backward()"
        ),
    ),
    "setup_context": (
        "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(x, n=3):\n        return x ** n\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output):\n"
        "        print(inputs, output); ctx.save_for_backward(inputs[0]); ctx.n = inputs[1]\n"
        "    @staticmethod\n    def backward(ctx, grad):\n"
        "        return grad * ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1), None\n"
        "w = torch.tensor([2., 3.], requires_grad=True)\n"
        "F.apply(w).sum().backward(); F.apply(n=2, x=w).sum().backward(); print(w.grad); F.apply(w, m=3)"
    ),
    "vjp is another name of backward": (
        "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def vjp(ctx, grad):\n        return grad * 2\n"
        "w = torch.ones(2, requires_grad=True); F.apply(w).sum().backward(); print(w.grad)"
    ),
    "both names": template(
        then=(
            "class Both(F):\n    @staticmethod\n    def vjp(ctx, grad):\n        return grad\n"
            "Both.apply(w).sum().backward()"
        )
    ),
    "no backward": (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "F.apply(torch.ones(2, requires_grad=True)).sum().backward()"
    ),
    "no forward": "class F(torch.autograd.Function):\n    pass\nF.apply(torch.ones(2))",
    "an instance": template(then="F()(w)"),
    "a nested backward": template(
        backward=(
            "x = torch.ones(2, requires_grad=True)\n"
            "        with torch.enable_grad():\n            (x * x).sum().backward()\n"
            "        print(x.grad); return grads[0] * 2"
        ),
        then="F.apply(w).sum().backward(); print(w.grad)",
    ),
    "hooks on the node": template(
        then=(
            "y = F.apply(w); y.grad_fn.register_hook(lambda gi, go: print(gi, go))\n"
            "y.grad_fn.register_prehook(lambda go: (go[0] * 3,)); y.sum().backward(); print(w.grad)"
        )
    ),
}


@pytest.mark.parametrize("source", SNIPPETS.values(), ids=SNIPPETS)
def test_does_what_pytorch_does(source):
    assert_shows_the_same(source)


class Power(Function):
    @staticmethod
    def forward(ctx, x, y, n):
        out = x**n * y
        ctx.save_for_backward(x, y, out)
        ctx.n = n
        return out

    @staticmethod
    def backward(ctx, grad):
        x, y, out = ctx.saved_tensors
        return grad * ctx.n * x ** (ctx.n - 1) * y, grad * out / y, None


def doubles(*values):
    return backlight.tensor(values, dtype=backlight.float64, requires_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_and_gradgradcheck_pass(fast_mode):
    inputs = (doubles(1.0, -2.0), doubles(0.5, 3.0))
    assert gradcheck(lambda x, y: Power.apply(x, y, 3), inputs, fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: Power.apply(x, y, 3), inputs, fast_mode=fast_mode)


def test_any_name_may_be_set_on_ctx():
    names = ["code", "edges", "extra", "outputs", "sequence", "line", "where", "name", "graph", "keep", "free"]
    names.append("backward_into")

    class Named(Function):
        @staticmethod
        def forward(ctx, x):
            for number, name in enumerate(names):
                setattr(ctx, name, number)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert [getattr(ctx, name) for name in names] == list(range(len(names)))
            return grad * 2

    w = backlight.ones(2, requires_grad=True)
    Named.apply(w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_ctx_shows_what_the_node_has():
    seen = []

    class Looking(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append((ctx.next_functions, ctx.metadata))
            with pytest.raises(AttributeError, match="'LookingBackward' object has no attribute 'nothing'"):
                ctx.nothing  # noqa: B018
            return grad * 2

    w = backlight.ones(2, requires_grad=True)
    y = Looking.apply(w)
    y.grad_fn.metadata["note"] = "mine"
    y.sum().backward()
    ((edges, metadata),) = seen
    assert edges[0][0].variable is w and metadata == {"note": "mine"}


def test_a_written_base_makes_a_custom_view_unusable():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 100

    w = backlight.ones(2, requires_grad=True)
    h = w * 1
    y = Same.apply(h)
    h.add_(1)
    with pytest.raises(
        RuntimeError, match="Output 0 of Same is a view and its base or another view of its base has been"
    ):
        y.sum().backward()


def test_the_graph_dies_with_its_output():
    gc.collect()
    gc.disable()
    try:
        x, y = doubles(1.0, 2.0), doubles(3.0, 4.0)
        out = Power.apply(x, y, 2)
        node = weakref.ref(out.grad_fn)
        out.sum().backward()
        del out
        assert node() is None
    finally:
        gc.enable()


def test_the_error_names_the_line_that_called_apply():
    h = doubles(1.0, 2.0) * 1
    out = Power.apply(h, doubles(1.0, 1.0), 2)  # the line
    h.mul_(2)
    with pytest.raises(RuntimeError) as caught:
        out.sum().backward()
    text = str(caught.value)
    assert "PowerBackward, which saved it, was made at" in text and "# the line" in text
    assert "It was written by mul_ at" in text and "h.mul_(2)" in text


def test_an_error_in_backward_says_which_call_it_was():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("lost")

    out = Failing.apply(backlight.ones(2, requires_grad=True)).sum()
    with pytest.raises(KeyError) as caught:
        out.backward()
    assert any("FailingBackward" in note and "Failing.apply" in note for note in caught.value.__notes__)


def test_it_has_pytorchs_names():
    names = ("Function", "FunctionCtx", "FunctionMeta", "BackwardCFunction", "once_differentiable")
    for name in names:
        assert hasattr(torch.autograd.function, name) and hasattr(backlight.autograd.function, name)
