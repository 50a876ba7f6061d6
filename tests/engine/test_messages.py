"""What the graph says when it is used wrongly, and where it is silent: PyTorch's words, run beside PyTorch's."""

import pytest
import torch
from snippets import assert_shows_the_same, run

import backlight

READING_GRAD = {
    "a result's grad warns": "w = torch.tensor(3., requires_grad=True); y = w * w; y.backward(); print(y.grad, w.grad)",
    "a result's grad warns before backward": "w = torch.tensor(3., requires_grad=True); y = w * w; print(y.grad)",
    "a retained grad is silent": (
        "w = torch.tensor(3., requires_grad=True); y = w * w; y.retain_grad(); (y * 5).backward(); print(y.grad)"
    ),
    "a constant's grad is silently None": (
        "w = torch.tensor(3., requires_grad=True); k = torch.tensor(4.); (w * k).backward(); print(k.grad, w.grad)"
    ),
    "a scaled leaf is a leaf no more": (
        "w = torch.ones(4, requires_grad=True) * 0.5; w.sum().backward(); print(w.is_leaf, w.grad)"
    ),
    "an optimizer refuses a result": "torch.optim.SGD([torch.ones(4, requires_grad=True) * 0.5], lr=0.1)",
    "retain_grad needs requires_grad": "torch.zeros(3).retain_grad()",
    "retain_grad on a leaf does nothing": (
        "w = torch.zeros(3, requires_grad=True); w.retain_grad(); print(w.retains_grad)"
    ),
    "hasattr reads the grad too": "y = torch.ones(2, requires_grad=True) * 2; print(hasattr(y, 'grad'))",
}

BACKWARD = {
    "several elements need a gradient": "w = torch.ones(4, requires_grad=True); (w + 1).backward()",
    "several elements need a gradient in grad": "w = torch.ones(4, requires_grad=True); torch.autograd.grad(w + 1, w)",
    "a freed graph": "w = torch.tensor(3., requires_grad=True); y = w.exp(); y.backward(); y.backward()",
    "a graph that saved nothing may run twice": (
        "w = torch.tensor(3., requires_grad=True); y = w + 2; y.backward(); y.backward(); print(w.grad)"
    ),
    "two losses share a freed part": (
        "w = torch.tensor(3., requires_grad=True); s = torch.tanh(w); a = s + 1; b = s * 2; a.backward(); b.backward()"
    ),
    "retain_graph lets it run again": (
        "w = torch.tensor(3., requires_grad=True); y = w * w\n"
        "y.backward(retain_graph=True); y.backward(); print(w.grad)"
    ),
    "a freed saved tensor": (
        "w = torch.tensor(3., requires_grad=True); y = w.exp(); y.backward(); y.grad_fn._saved_result"
    ),
    "a state carried over iterations": (
        "w = torch.ones(2, 2, requires_grad=True); h = torch.ones(1, 2)\n"
        "for step in range(3):\n    h = torch.tanh(h @ w)\n    h.sum().backward()"
    ),
    "nothing requires grad": "torch.tensor(3.).backward()",
    "the second of two does not": (
        "w = torch.tensor(3., requires_grad=True); torch.autograd.backward([w * 2, torch.tensor(1.)])"
    ),
    "argmax cuts": "w = torch.ones(4, requires_grad=True); (w.argmax().float() * 2).backward()",
    "rebuilding cuts, and warns": (
        "w = torch.ones(4, requires_grad=True); loss = torch.tensor(w.sum()); loss.backward()"
    ),
    "rebuilding with requires_grad cuts silently": (
        "w = torch.ones(4, requires_grad=True)\n"
        "loss = torch.tensor(w.sum().item(), requires_grad=True); loss.backward(); print(w.grad, loss.grad)"
    ),
    "no_grad cuts": (
        "w = torch.ones(4, requires_grad=True)\n"
        "with torch.no_grad():\n    loss = (w * 3).sum()\n"
        "print(loss.requires_grad, loss.grad_fn)\nloss.backward()"
    ),
    "an inference tensor is not saved": (
        "w = torch.ones(2, requires_grad=True)\n"
        "with torch.inference_mode():\n    x = torch.ones(2) * 2\nprint(x.is_inference())\n(w * x).sum()"
    ),
    "an inference tensor cannot come to require grad": (
        "with torch.inference_mode():\n    x = torch.zeros(2)\nx.requires_grad_(True)"
    ),
    "an inference tensor is not written outside": "with torch.inference_mode():\n    x = torch.zeros(2)\nx.mul_(3)",
    "an inference tensor has no version": "with torch.inference_mode():\n    x = torch.zeros(2)\nx._version",
    "a clone of an inference tensor is normal": (
        "w = torch.ones(2, requires_grad=True)\n"
        "with torch.inference_mode():\n    x = torch.ones(2) * 2\n"
        "(w * x.clone()).sum().backward(); print(w.grad, x.clone().is_inference())"
    ),
    "a gradient of another shape": "w = torch.ones(4, requires_grad=True); (w * 2).backward(torch.ones(3))",
    "fewer gradients than tensors": (
        "w = torch.ones(4, requires_grad=True); torch.autograd.backward([w * 2, w * 3], [torch.ones(4)])"
    ),
    "a gradient that is no tensor": "w = torch.ones(2, requires_grad=True); torch.autograd.backward([w * 2], [3.])",
    "a gradient of another dtype is cast": (
        "w = torch.ones(2, requires_grad=True); (w * 2).backward(torch.ones(2, dtype=torch.float64)); print(w.grad)"
    ),
    "grad of another size": "w = torch.ones(4, requires_grad=True); w.grad = torch.ones(3)",
    "grad of another dtype": "w = torch.ones(4, requires_grad=True); w.grad = torch.ones(4, dtype=torch.float64)",
    "grad of another kind": "w = torch.ones(4, requires_grad=True); w.grad = [1., 1., 1., 1.]",
    "inputs may be a result": (
        "w = torch.tensor(3., requires_grad=True); h = w * 2; y = h * h; y.backward(inputs=[h]); print(h.grad, w.grad)"
    ),
    "inputs must not be empty": "w = torch.tensor(3., requires_grad=True); (w * 2).backward(inputs=[])",
    "create_graph warns of a cycle": (
        "w = torch.tensor(3., requires_grad=True); (w * w).backward(create_graph=True); print(w.grad)"
    ),
    "both names of the gradients": (
        "w = torch.tensor(3., requires_grad=True)\n"
        "torch.autograd.backward([w * 2], [torch.tensor(1.)], grad_variables=[torch.tensor(1.)])"
    ),
}

IN_PLACE = {
    "a leaf": "w = torch.zeros(3, requires_grad=True); w += 1",
    "a leaf by index": "w = torch.zeros(3, requires_grad=True); w[1] = 2.",
    "a view of a leaf": "w = torch.zeros(3, requires_grad=True); w.view(3, 1).add_(2)",
    "a saved result": "w = torch.zeros(3, requires_grad=True); y = w.exp(); y.mul_(2); y.sum().backward()",
    "a saved input": "w = torch.ones(3, requires_grad=True); h = w * 2; y = h * h; h.fill_(1); y.sum().backward()",
    "a saved input, read by the user": (
        "w = torch.ones(3, requires_grad=True); h = w * 2; y = h * h; h.fill_(1); y.grad_fn._saved_self"
    ),
    "an input that was detached": (
        "w = torch.tensor(4., requires_grad=True); h = w * 1; y = h * h; h.detach().fill_(9.); y.backward()"
    ),
    "data goes unnoticed": (
        "w = torch.tensor(4., requires_grad=True); h = w * 1; y = h * h; h.data.fill_(9.); y.backward(); print(w.grad)"
    ),
    "one of several views": "h = torch.ones(4, requires_grad=True) * 1; a, b = h.split(2); b.mul_(2)",
    "a row of an unbound tensor": "h = torch.ones(2, 2, requires_grad=True) * 1\nfor row in h:\n    row.mul_(2)",
    "a view made under no_grad": (
        "h = torch.ones(4, requires_grad=True) * 1\nwith torch.no_grad():\n    v = h.view(2, 2)\nv.add_(1)"
    ),
    "a slice of a result": (
        "w = torch.ones(4, requires_grad=True); h = w * 1; h[1:3].mul_(5); h.sum().backward(); print(w.grad)"
    ),
    "an expanded tensor": "torch.ones(1).expand(3).add_(torch.ones(3))",
    "a buffer becomes part of the graph": (
        "b = torch.zeros(2); w = torch.ones(2, requires_grad=True); b += w; b *= w\n"
        "print(b.requires_grad, b.grad_fn); b.sum().backward(); print(w.grad)"
    ),
    "no_grad allows a leaf": (
        "w = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n    w -= 0.5\nprint(w, w._version, w.is_leaf)"
    ),
    "a retained gradient follows the new value": (
        "w = torch.ones(2, requires_grad=True); h = w * 2; h.retain_grad(); h.mul_(3); (h * 5).sum().backward()\n"
        "print(h.grad, w.grad)"
    ),
}

REQUIRES_GRAD = {
    "an integer tensor": "torch.tensor([1, 2], requires_grad=True)",
    "an integer tensor's method": "torch.tensor([1, 2]).requires_grad_()",
    "an integer tensor's attribute": "x = torch.tensor([1, 2]); x.requires_grad = True",
    "switched off on a result": "y = torch.ones(2, requires_grad=True) * 2; y.requires_grad = False",
    "switched off on a result by method": "y = torch.ones(2, requires_grad=True) * 2; y.requires_grad_(False)",
    "switched on where it is on": "y = torch.ones(2, requires_grad=True) * 2; y.requires_grad_(); print(y.is_leaf)",
    "a view cannot be detached in place": "y = (torch.ones(2, 2, requires_grad=True) * 2)[0]; y.detach_()",
}

GRAD = {
    "an unused input": (
        "a, b = (torch.tensor(v, requires_grad=True) for v in (3., 4.)); torch.autograd.grad(a * a, [a, b])"
    ),
    "allow_unused and materialize_grads": (
        "a, b = (torch.tensor(v, requires_grad=True) for v in (3., 4.))\n"
        "print(torch.autograd.grad(a * a, [b, a], allow_unused=True))\n"
        "print(torch.autograd.grad(a * a, [b, a], materialize_grads=True))"
    ),
    "materialize_grads forbids allow_unused=False": (
        "a = torch.tensor(3., requires_grad=True)\n"
        "torch.autograd.grad(a * a, a, allow_unused=False, materialize_grads=True)"
    ),
    "an input that does not require grad": (
        "a = torch.tensor(3., requires_grad=True); b = torch.tensor(4.); torch.autograd.grad(a * b, b)"
    ),
    "no inputs": "a = torch.tensor(3., requires_grad=True); torch.autograd.grad(a * 2, [])",
    "an input that is no tensor": "a = torch.tensor(3., requires_grad=True); torch.autograd.grad(a * 2, [3.])",
    "a second derivative without create_graph": (
        "a = torch.tensor(3., requires_grad=True); (g,) = torch.autograd.grad(a * a * a, a); torch.autograd.grad(g, a)"
    ),
    "a second derivative with create_graph": (
        "a = torch.tensor(3., requires_grad=True)\n"
        "(g,) = torch.autograd.grad(a * a * a, a, create_graph=True); print(torch.autograd.grad(g, a))"
    ),
    "a slice made afterwards": (
        "a = torch.ones(4, requires_grad=True); y = (a * 2).sum(); torch.autograd.grad(y, a[1])"
    ),
    "only_inputs is deprecated": (
        "a = torch.tensor(3., requires_grad=True); print(torch.autograd.grad(a * 2, a, only_inputs=False))"
    ),
}

MODES = {
    "a step without no_grad": "w = torch.ones(2, requires_grad=True); (w * 2).sum().backward(); w -= 0.1 * w.grad",
    "a step that makes a new tensor": (
        "w = torch.ones(2, requires_grad=True); (w * 2).sum().backward(); w = w - 0.1 * w.grad\n"
        "print(w.is_leaf, w.requires_grad); (w * 2).sum().backward(); print(w.grad)"
    ),
    "a new tensor under no_grad": (
        "w = torch.ones(2, requires_grad=True); (w * 2).sum().backward()\n"
        "with torch.no_grad():\n    w = w - 0.1 * w.grad\n"
        "print(w.requires_grad); (w * 2).sum().backward()"
    ),
    "no_grad decorates without parentheses": (
        "@torch.no_grad\ndef double(x):\n    return x * 2\nprint(double(torch.ones(2, requires_grad=True)))"
    ),
    "the class is no context manager": "with torch.no_grad:\n    pass",
    "a bare call does nothing": "torch.no_grad(); print((torch.ones(1, requires_grad=True) * 2).requires_grad)",
    "a leaf made inside keeps requires_grad": (
        "with torch.no_grad():\n    x = torch.ones(2, requires_grad=True); y = x * 2\n"
        "print(x.requires_grad, y.requires_grad)"
    ),
    "backward runs under no_grad": (
        "w = torch.tensor(3., requires_grad=True); y = w * w\nwith torch.no_grad():\n    y.backward()\nprint(w.grad)"
    ),
    "a detached copy is a new leaf": (
        "w = torch.ones(2, requires_grad=True); d = (w * 3).detach().requires_grad_(); d.sum().backward()\n"
        "print(d.grad, w.grad)"
    ),
}

HOOKS = {
    "on a constant": "torch.zeros(2).register_hook(lambda g: g)",
    "that changes the shape": (
        "w = torch.ones(3, requires_grad=True); y = w * 2; y.register_hook(lambda g: g[:2]); y.sum().backward()"
    ),
    "that changes the shape at a leaf": (
        "w = torch.ones(3, requires_grad=True); w.register_hook(lambda g: g[:2]); (w * 2).sum().backward()"
    ),
    "that returns a number": (
        "w = torch.ones(3, requires_grad=True); y = w * 2; y.register_hook(lambda g: 2.0); y.sum().backward()"
    ),
    "that changes the dtype": (
        "w = torch.ones(3, requires_grad=True); y = w * 2; y.register_hook(lambda g: g.double()); y.sum().backward()"
    ),
    "post-accumulate on a result": (
        "w = torch.ones(2, requires_grad=True); (w * 2).register_post_accumulate_grad_hook(lambda t: None)"
    ),
    "post-accumulate on a constant": "torch.ones(2).register_post_accumulate_grad_hook(lambda t: None)",
    **{
        f"a post-accumulate hook that returns {answer}": (
            "w = torch.ones(2, requires_grad=True)\n"
            f"w.register_post_accumulate_grad_hook(lambda t: {answer}); w.sum().backward()"
        )
        for answer in ("3", "t", "t * 2", "(t,)")
    },
    **{
        f"a node's {hook} that returns {answer}": (
            f"w = torch.ones(2, requires_grad=True); y = w * 3; y.grad_fn.{hook}(lambda *grads: {answer})\n"
            "y.sum().backward()"
        )
        for hook in ("register_hook", "register_prehook")
        for answer in ("3", "grads[0][0]", "list(grads[0])", "(grads[0][0],) * 3")
    },
    "a counted write to no tensor": "torch.autograd.graph.increment_version(3)",
    "a counted write to a list of no tensors": "torch.autograd.graph.increment_version([torch.ones(1), 3])",
}

GRADCHECK = {
    f"a wrong derivative, {options}": (
        f"torch.autograd.gradcheck(lambda x: x.detach() * x, torch.tensor([1., 3.]).double().requires_grad_(){options})"
    )
    for options in ("", ", check_forward_ad=True, check_backward_ad=False")
}

SIZES = {
    f"a negative size of {maker}": f"torch.{maker}(2, -1)" for maker in ("zeros", "ones", "empty", "rand", "randn")
}

ANOMALY = {
    "it can be asked for": (
        "with torch.autograd.set_detect_anomaly(True, check_nan=False):\n"
        "    print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())\n"
        "print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())"
    ),
    "infinity does not": (
        "with torch.autograd.detect_anomaly(check_nan=True):\n"
        "    w = torch.tensor([0.], requires_grad=True); w.log().sum().backward()\n"
        "print(w.grad)"
    ),
    "a NaN in the forward does not": (
        "with torch.autograd.set_detect_anomaly(True):\n    w = torch.tensor([-1.], requires_grad=True); print(w.log())"
    ),
    "switched off it lets NaN pass": (
        "w = torch.tensor([0.], requires_grad=True); (w.sqrt() * 0).sum().backward(); print(w.grad)"
    ),
}

SNIPPETS = {
    f"{section.lower()}: {name}": source
    for section in (
        "READING_GRAD",
        "BACKWARD",
        "IN_PLACE",
        "REQUIRES_GRAD",
        "GRAD",
        "MODES",
        "HOOKS",
        "GRADCHECK",
        "SIZES",
        "ANOMALY",
    )
    for name, source in globals()[section].items()
}


NAN = """
with torch.autograd.set_detect_anomaly(True):
    w = torch.tensor([0., 4.], requires_grad=True)
    y = w.sqrt()
    (y * 0).sum().backward()
"""


def test_anomaly_mode_names_the_node_and_the_forward_line():
    theirs, ours = run(torch, NAN), run(backlight, NAN)
    assert str(ours.error).startswith(f"{theirs.error}\n  It was made at <snippet>:4\n")
    (kind, text), (their_kind, their_text) = *ours.warned, *theirs.warned
    assert kind is their_kind
    assert text.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert text.splitlines()[-1] == their_text.splitlines()[-1] == '  File "<snippet>", line 4, in <module>'


def test_anomaly_mode_changes_the_hint_of_an_in_place_error():
    source = (
        "w = torch.ones(2, requires_grad=True); y = w.exp(); y.add_(1)\n"
        "with torch.autograd.set_detect_anomaly(True):\n    y.sum().backward()"
    )
    assert str(run(backlight, source).error).startswith(str(run(torch, source).error))


@pytest.mark.parametrize("source", SNIPPETS.values(), ids=SNIPPETS)
def test_says_what_pytorch_says(source):
    assert_shows_the_same(source)
