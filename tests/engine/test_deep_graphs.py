"""Graphs 200,000 ops deep run, are differentiated twice and die without recursion, in Python or in C.

Each test runs in a process of its own, with a small stack and a low recursion limit: recursion for each op ends it.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import backlight

START = """
import gc
import resource
import sys

import backlight as torch
from backlight import func
from backlight.autograd import Function, forward_ad, grad
from backlight.utils.checkpoint import checkpoint

DEPTH, PART = 200_000, 20_000
w = torch.tensor(1.0, requires_grad=True)
sys.setrecursionlimit(200)
gc.disable()


def chain(x, length=DEPTH):
    for _ in range(length):
        x = x * 1.0
    return x


def powers(x, length=PART):
    for _ in range(length):
        x = x * w
    return x


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + x

    @staticmethod
    def backward(ctx, grad):
        return grad


def slope(y):
    w.grad = None
    y.backward()
    return w.grad.item()
"""

PROGRAMS = {
    "backward": "assert slope(chain(w)) == 1.0",
    "backward through what inputs lead to": "assert grad(chain(w * 1), w)[0].item() == 1.0",
    "backward with hooks": """
        h = w * 1
        h.register_hook(lambda grad: grad * 2)
        assert slope(chain(h)) == 2.0
    """,
    "never run": "chain(w)",
    "dropped in an exception": """
        def program():
            y = chain(w)
            raise KeyError(y)

        try:
            program()
        except KeyError:
            pass
    """,
    "collected in a cycle": """
        y = chain(w)
        y.own = y
        del y
        gc.collect()
    """,
    "differentiated twice": """
        (first,) = grad(chain(w * w), w, create_graph=True)
        (second,) = grad(first, w)
        assert (first.item(), second.item()) == (2.0, 2.0)
    """,
    "differentiated and the derivative never run": "grad(chain(w * w), w, create_graph=True)",
    "backward with create_graph": """
        chain(w * w).backward(create_graph=True)
        assert w.grad.item() == 2.0
        w.grad = None
    """,
    "forward mode": """
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.tensor(1.0), torch.tensor(1.0))
            assert forward_ad.unpack_dual(powers(dual, 50_000)).tangent.item() == 1.0
    """,
    "forward mode, recorded": """
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(powers(forward_ad.make_dual(w, torch.tensor(1.0)))).tangent
            del tangent
    """,
    "in func": "assert func.grad(chain)(torch.tensor(1.0)).item() == 1.0",
    "saved tensors' hooks": """
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, lambda held: held):
            y = powers(w)
            powers(w)
        assert slope(y) == PART + 1
    """,
    "writes to a view": """
        base = torch.ones(2) * w
        for _ in range(PART):
            base[0].mul_(w)
        assert slope(base.sum()) == PART + 2
    """,
    "writes to a view, never run": """
        base = torch.ones(2) * w
        for _ in range(PART):
            base[0].mul_(w)
        del base
    """,
    "writes in place": """
        h = w * 1
        for _ in range(DEPTH):
            h.add_(1)
        assert slope(h) == 1.0
    """,
    "views of views": """
        h = torch.ones(2) * w
        for _ in range(PART):
            h = h.view(2)[:]
        assert slope(h.sum()) == 2.0
    """,
    "several outputs": """
        h = torch.ones(2) * w
        for _ in range(PART):
            h = torch.stack(h.unbind()[::-1])
        assert slope(h.sum()) == 2.0
    """,
    "functions": """
        def doubles(x):
            for _ in range(PART):
                x = Double.apply(x)
            return x

        doubles(w)
        assert slope(doubles(w)) == 1.0
    """,
    "a checkpoint": "assert slope(checkpoint(powers, w, use_reentrant=False)) == PART + 1",
    "followed by hand": """
        node = chain(w).grad_fn
        while node.next_functions:
            node = node.next_functions[0][0]
        assert node.variable is w
    """,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_deep_graph_needs_no_recursion(program):
    text = START.replace("import sys\n", "import sys\n\nresource.setrlimit(resource.RLIMIT_STACK, (2**20, 2**20))\n", 1)
    environment = {**os.environ, "PYTHONPATH": str(Path(backlight.__file__).parent.parent)}
    command = [sys.executable, "-c", text + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-2000:] or f"ended by signal {-done.returncode}"
