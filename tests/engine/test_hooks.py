"""Hooks: their order, what they may answer, when they are removed. Each snippet is run on PyTorch too."""

import gc
import weakref

import pytest
import torch
from snippets import assert_shows_the_same

import backlight

START = """
log = []
w = torch.tensor([1., 2.], requires_grad=True)
h = w * 2
y = (h * h).sum()
def note(name, factor=None):
    def hook(*seen):
        print(name, *seen)
        if factor is not None:
            return seen[0] * factor if torch.is_tensor(seen[0]) else tuple(g * factor for g in seen[0])
    return hook
"""

SNIPPETS = {
    "the order at a node": (
        "h.grad_fn.register_hook(note('posthook')); h.grad_fn.register_prehook(note('prehook', 10))\n"
        "h.retain_grad(); h.register_hook(note('tensor hook', 3)); h.register_hook(note('second'))\n"
        "y.backward(); print(h.grad, w.grad)"
    ),
    "the order at a leaf": (
        "a = h.grad_fn.next_functions[0][0]\n"
        "a.register_hook(note('posthook')); a.register_prehook(note('prehook', 10)); w.register_hook(note('leaf', 3))\n"
        "w.register_post_accumulate_grad_hook(lambda t: print('post', t.grad)); y.backward(); print(w.grad)"
    ),
    "a posthook replaces gradients": (
        "h.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 5 for g in gi)); y.backward()\n"
        "print(w.grad)"
    ),
    "a leaf is written when its last gradient arrives": (
        "v = torch.ones(2, requires_grad=True); late = v * 3; z = ((late * w).exp()).sum()\n"
        "late.register_hook(lambda g: print('w already has', w.grad)); z.backward(); print(w.grad, v.grad)"
    ),
    "a hook on a leaf used twice sees the sum": (
        "w.register_hook(note('sum')); (w * 2 + w * 3).sum().backward(); print(w.grad)"
    ),
    "a hook may return None": "h.register_hook(lambda g: None); y.backward(); print(w.grad)",
    "a removed hook is silent": (
        "handle = h.register_hook(note('never')); handle.remove(); handle.remove(); y.backward(); print(w.grad)"
    ),
    "a handle is a context manager": (
        "with h.register_hook(note('inside')):\n    y.backward(retain_graph=True)\ny.backward(); print(w.grad)"
    ),
    "hooks of leaves stay": (
        "w.register_hook(note('leaf', 2)); y.backward(); w.grad = None; (w * 3).sum().backward(); print(w.grad)"
    ),
    "hooks of an accumulator stay": (
        "h.grad_fn.next_functions[0][0].register_hook(note('acc')); y.backward(); (w * 3).sum().backward()\n"
        "print(w.grad)"
    ),
    "metadata of an accumulator stays": (
        "h.grad_fn.next_functions[0][0].metadata['k'] = 3; print(h.grad_fn.next_functions[0][0].metadata)"
    ),
    "metadata of a node is the user's": "h.grad_fn.metadata['k'] = 3; print(h.grad_fn.metadata, y.grad_fn.metadata)",
    "grad runs tensor hooks of what it asks for": (
        "h.register_hook(note('h', 10)); w.register_hook(note('w', 3)); print(torch.autograd.grad(y, w))"
    ),
    "grad of a result that leads on is taken before its hooks": (
        "h.register_hook(note('h', 10)); print(torch.autograd.grad(y, [h, w]))"
    ),
    "grad of a result where it ends is taken after its hooks": (
        "h.register_hook(note('h', 10)); h.grad_fn.register_prehook(note('pre', 5)); print(torch.autograd.grad(y, h))"
    ),
    "grad adds to retained gradients": (
        "h.retain_grad(); torch.autograd.grad(y, h, retain_graph=True); torch.autograd.grad(y, w)\n"
        "print(h.grad, w.grad)"
    ),
    "grad does not run hooks of accumulators": (
        "a = h.grad_fn.next_functions[0][0]; a.register_prehook(note('never'))\n"
        "w.register_post_accumulate_grad_hook(note('nor this')); print(torch.autograd.grad(y, w), w.grad)"
    ),
    "backward with inputs runs hooks of accumulators": (
        "a = h.grad_fn.next_functions[0][0]; a.register_prehook(note('prehook', 2))\n"
        "w.register_post_accumulate_grad_hook(lambda t: print('post', t.grad)); y.backward(inputs=[w])"
    ),
    "backward with inputs leaves other leaves alone": (
        "v = torch.ones(2, requires_grad=True); (w * v).sum().backward(inputs=[v]); print(w.grad, v.grad)"
    ),
    "backward with a result among inputs retains": (
        "y.backward(inputs=[h], retain_graph=True); print(h.grad, w.grad, h.retains_grad)\n"
        "y.backward(inputs=[h, w]); print(h.grad, w.grad)"
    ),
    "hooks on outputs of a node with several": (
        "a, b = w.unbind(); b.retain_grad(); b.register_hook(note('b', 2)); a.register_hook(note('a'))\n"
        "(a * 3 + b * 4).backward(); print(w.grad, b.grad)"
    ),
    "prehooks see all outputs": (
        "a, b = w.unbind(); a.grad_fn.register_prehook(note('pre')); (b * 4).backward(); print(w.grad)"
    ),
    "hooks under create_graph are recorded": (
        "h.register_hook(lambda g: g * w); (g,) = torch.autograd.grad(y, w, create_graph=True)\n"
        "print(g, torch.autograd.grad(g.sum(), w))"
    ),
    "hooks see grad mode": (
        "h.register_hook(lambda g: print(torch.is_grad_enabled(), g.requires_grad))\n"
        "torch.autograd.grad(y, w, retain_graph=True); torch.autograd.grad(y, w, create_graph=True)"
    ),
    "a hook may run a backward": (
        "v = torch.tensor(3., requires_grad=True)\n"
        "def nested(g):\n"
        "    with torch.enable_grad():\n        (v * v).backward()\n    return g * v.grad\n"
        "h.register_hook(nested); y.backward(); print(w.grad, v.grad)"
    ),
    "a hook may run a backward of the same leaf": (
        "def nested(g):\n    with torch.enable_grad():\n        (w * 100).sum().backward()\n"
        "h.register_hook(nested); y.backward(); print(w.grad)"
    ),
    "a hook before an in-place write sees the old gradient": (
        "h = w * 2; h.register_hook(note('old')); h.retain_grad(); h.mul_(3); h.register_hook(note('new'))\n"
        "(h * 5).sum().backward(); print(h.grad, w.grad)"
    ),
    "a prehook of the wrong length": "h.grad_fn.register_prehook(lambda g: (g[0], g[0])); y.backward()",
    "a posthook of the wrong length": "h.grad_fn.register_hook(lambda gi, go: (gi[0],)); y.backward()",
    "retain_grad twice is once": "h.retain_grad(); h.retain_grad(); y.backward(); print(h.grad, h.retains_grad)",
    "retained gradients add up": "h.retain_grad(); y.backward(retain_graph=True); y.backward(); print(h.grad)",
    "a root's hooks run": "y.register_hook(note('root', 2)); y.retain_grad(); y.backward(); print(w.grad, y.grad)",
    "a leaf as root": "w.register_hook(note('leaf', 2)); w.backward(torch.ones(2)); print(w.grad)",
    "a post-accumulate hook answers nothing": (
        "w.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(2)); y.backward()"
    ),
    "a post-accumulate hook may change grad in place": (
        "def double(t):\n    t.grad.mul_(2)\nw.register_post_accumulate_grad_hook(double); y.backward(); print(w.grad)"
    ),
    "the optimizer in a hook": (
        "def step(t):\n    with torch.no_grad():\n        t -= t.grad\n    t.grad = None\n"
        "w.register_post_accumulate_grad_hook(step); y.backward(); print(w, w.grad)"
    ),
}


@pytest.mark.parametrize("source", SNIPPETS.values(), ids=SNIPPETS)
def test_does_what_pytorch_does(source):
    assert_shows_the_same(START + source)


def test_retain_grad_can_be_taken_back():
    w = backlight.ones(2, requires_grad=True)
    h = w * 2
    h.retain_grad()
    h.retain_grad(False)
    (h * 3).sum().backward()
    assert not h.retains_grad
    with pytest.warns(UserWarning, match="is not a leaf"):
        assert h.grad is None


def test_a_handle_does_not_keep_the_tensor_alive():
    gc.collect()
    gc.disable()
    try:
        w = backlight.ones(2, requires_grad=True)
        handle = w.register_hook(lambda grad: None)
        alive = weakref.ref(w)
        del w
        assert alive() is None
        handle.remove()
    finally:
        gc.enable()


def test_a_retained_tensor_is_not_kept_alive():
    w = backlight.ones(2, requires_grad=True)
    h = w * 2
    h.retain_grad()
    y = (h * 3).sum()
    alive = weakref.ref(h)
    del h
    y.backward()
    assert alive() is None and w.grad.tolist() == [6.0, 6.0]


def test_a_kept_gradient_is_not_written_by_the_walk():
    """A hook may keep what it saw: later additions to `.grad` go elsewhere."""
    w = backlight.ones(2, requires_grad=True)
    kept = []
    w.register_hook(kept.append)
    (w * 2).sum().backward()
    (w * 2).sum().backward()
    assert [grad.tolist() for grad in kept] == [[2.0, 2.0], [2.0, 2.0]]
    assert w.grad.tolist() == [4.0, 4.0]
    w.grad.mul_(0)
    assert [grad.tolist() for grad in kept] == [[2.0, 2.0], [2.0, 2.0]]


def test_a_handle_has_pytorchs_name():
    for module in (backlight, torch):
        handle = module.ones(2, requires_grad=True).register_hook(lambda grad: None)
        assert type(handle).__name__ == "RemovableHandle"
        assert isinstance(handle, module.utils.hooks.RemovableHandle)
