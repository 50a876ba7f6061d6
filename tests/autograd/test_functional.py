"""vjp, jvp, Jacobians and Hessians give PyTorch's numbers, structure and errors."""

import numpy as np
import pytest
import torch
from snippets import assert_shows_the_same

import backlight
from backlight.autograd.functional import hessian, jacobian

START = """
D = torch.autograd.functional
a, b = torch.tensor([1., 2., 3.]), torch.tensor([0.5, 0.25, 2.])
def cubes(x): return (x * x * x).sum()
def scaled(x): return (x * x).sum() * x
def pair(x, y): return x * y, (x + y).sum()
def mixed(x, y): return (x * x * y).sum()
def constant(x): return torch.ones(3)
def line(x): return x.sum() * 2
def first(x, y): return x * 2
"""

VALUES = {
    "vjp": "print(D.vjp(scaled, a, b))",
    "vjp of one element": "print(D.vjp(cubes, a))",
    "vjp of several": "print(D.vjp(pair, (a, b), (b, torch.tensor(2.))))",
    "jvp": "print(D.jvp(scaled, a, b))",
    "jvp of several": "print(D.jvp(pair, (a, b), (b, a)))",
    "jvp of one element": "print(D.jvp(cubes, torch.tensor([2.])))",
    "jacobian": "print(D.jacobian(scaled, a))",
    "jacobian of several": "print(D.jacobian(pair, (a, b)))",
    "jacobian of one element": "print(D.jacobian(cubes, a))",
    "jacobian of a matrix": "print(D.jacobian(lambda m: m @ m, torch.tensor([[1., 2.], [3., 4.]])).shape)",
    "jacobian, vectorized": "print(D.jacobian(scaled, a, vectorize=True))",
    "hessian": "print(D.hessian(cubes, a))",
    "hessian of several": "print(D.hessian(mixed, (a, b)))",
    "hessian, vectorized": "print(D.hessian(cubes, a, vectorize=True))",
    "hvp": "print(D.hvp(cubes, a, b), D.hvp(mixed, (a, b), (b, a)))",
    "vhp": "print(D.vhp(cubes, a, b), D.vhp(mixed, (a, b), (b, a)))",
    "create_graph": (
        "w = torch.tensor([1., 2., 3.], requires_grad=True)\n"
        "D.hessian(cubes, w, create_graph=True).sum().backward(); print(w.grad)\n"
        "w.grad = None; D.jacobian(scaled, w, create_graph=True).sum().backward(); print(w.grad)\n"
        "w.grad = None; D.vjp(scaled, w, b, create_graph=True)[1].sum().backward(); print(w.grad)\n"
        "w.grad = None; D.jvp(scaled, w, b, create_graph=True)[1].sum().backward(); print(w.grad)\n"
        "w.grad = None; D.hvp(cubes, w, b, create_graph=True)[1].sum().backward(); print(w.grad)\n"
        "w.grad = None; D.vhp(cubes, w, b, create_graph=True)[1].sum().backward(); print(w.grad)"
    ),
    "results are detached": (
        "w = torch.tensor([1., 2., 3.], requires_grad=True); out, slope = D.vjp(scaled, w, b)\n"
        "print(out.requires_grad, slope.requires_grad, D.jacobian(scaled, w).requires_grad, w.grad)"
    ),
    "a tensor that the function closes over is not differentiated": (
        "w = torch.tensor([1., 2., 3.], requires_grad=True); print(D.jacobian(lambda x: x * w, w))"
    ),
    "under no_grad": (
        "with torch.no_grad():\n    print(D.jacobian(scaled, a), D.vjp(scaled, a, b), D.hessian(cubes, a))"
    ),
    "constant and linear functions give zeros": (
        "print(D.vjp(constant, a, b), D.jvp(constant, a, b), D.jacobian(constant, a))\n"
        "print(D.hessian(line, a), D.hvp(line, a, b), D.vhp(line, a, b))\n"
        "print(D.vjp(first, (a, b), b), D.jvp(first, (a, b), (b, b)), D.jacobian(first, (a, b)))"
    ),
    "containers by forward mode": (
        "for f in (scaled, lambda x: (scaled(x),), lambda x: (x, x.sum())):\n"
        "    print(D.jacobian(f, a, vectorize=True, strategy='forward-mode'))\n"
        "for f in (lambda x, y: x * y, lambda x, y: (x * y, y.sum())):\n"
        "    print(D.jacobian(f, (a, b), vectorize=True, strategy='forward-mode'))"
    ),
    "a scalar": "print(D.jacobian(lambda x: x * x, torch.tensor(3.)), D.hessian(lambda x: x * x, torch.tensor(3.)))",
}

REFUSED = {
    "vjp without v": "D.vjp(scaled, a)",
    "jvp without v": "D.jvp(scaled, a)",
    "hvp without v": "D.hvp(cubes, a)",
    "vhp without v": "D.vhp(cubes, a)",
    "v of another length": "D.vjp(pair, (a, b), b)",
    "v where one is wanted": "D.vjp(scaled, a, (b, b))",
    "v of another shape": "D.vjp(scaled, a, torch.ones(2))",
    "v of another shape in a tuple": "D.vjp(pair, (a, b), (torch.ones(2), torch.tensor(1.)))",
    "an input that is no tensor": "D.vjp(scaled, 3.)",
    "one of several that is no tensor": "D.jacobian(pair, (a, 3.))",
    "an output that is no tensor": "D.jvp(lambda x: 3., a, b)",
    "a Hessian of several elements": "D.hessian(scaled, a)",
    "a Hessian of several outputs": "D.hessian(pair, (a, b))",
    "vhp of several elements": "D.vhp(scaled, a, b)",
    "hvp of several outputs": "D.hvp(pair, (a, b), (a, b))",
    "forward mode one by one": "D.jacobian(scaled, a, strategy='forward-mode')",
    "a Hessian by forward mode one by one": "D.hessian(cubes, a, outer_jacobian_strategy='forward-mode')",
    "create_graph by forward mode": "D.jacobian(scaled, a, create_graph=True, vectorize=True, strategy='forward-mode')",
    "strict by forward mode": "D.jacobian(scaled, a, strict=True, vectorize=True, strategy='forward-mode')",
    "strict and vectorized": "D.jacobian(scaled, a, strict=True, vectorize=True)",
    **{
        f"strict {call}": f"D.{call[:-1]}, strict=True)"
        for call in (
            "vjp(constant, a, b)",
            "jvp(constant, a, b)",
            "jacobian(constant, a)",
            "hessian(constant, a)",
            "hvp(constant, a, b)",
            "vhp(constant, a, b)",
            "hessian(line, a)",
            "hvp(line, a, b)",
            "vhp(line, a, b)",
            "vjp(first, (a, b), b)",
            "jvp(first, (a, b), (b, b))",
            "jacobian(first, (a, b))",
        )
    },
    "strict vhp with create_graph": (
        "w = torch.ones(3, requires_grad=True); D.vhp(lambda x: (x * x).sum(), w, a, strict=True, create_graph=True)"
    ),
    "strict with create_graph": (
        "w = torch.ones(3, requires_grad=True); D.jacobian(line, w, strict=True, create_graph=True)"
    ),
    "strict vjp with create_graph": (
        "w = torch.ones(3, requires_grad=True); D.vjp(line, w, strict=True, create_graph=True)"
    ),
}


@pytest.mark.parametrize("source", VALUES.values(), ids=VALUES)
def test_gives_what_pytorch_gives(source):
    assert assert_shows_the_same(START + source) is None


def test_forward_mode_gives_the_same_numbers():
    def pair(x, y):
        return x * y, (x + y).sum()

    a, b = backlight.tensor([1.0, 2.0]), backlight.tensor([3.0, 4.0])
    rows = jacobian(pair, (a, b))
    again = jacobian(pair, (a, b), strategy="forward-mode", vectorize=True)
    assert [[one.tolist() for one in row] for row in rows] == [[one.tolist() for one in row] for row in again]
    found = hessian(lambda x, y: (x**2 * y.exp()).sum(), (a, b), vectorize=True, outer_jacobian_strategy="forward-mode")
    rows = hessian(lambda x, y: (x**2 * y.exp()).sum(), (a, b))
    assert [[one.tolist() for one in row] for row in found] == [[one.tolist() for one in row] for row in rows]
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        jacobian(pair, (a, b), strategy="sideways")


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_refuses_what_pytorch_refuses(source):
    assert assert_shows_the_same(START + source) is not None


@pytest.mark.parametrize("create_graph", [False, True])
def test_vectorized_rows_are_those_of_the_loop(create_graph):
    def function(module):
        return lambda a, b: ((a @ b).tanh() * a.sum(), b.sum(), module.ones(2, dtype=module.float64))

    found = []
    for module in (torch, backlight):
        inputs = tuple(
            module.tensor(values, dtype=module.float64, requires_grad=True)
            for values in ([[0.1, 0.2], [0.3, -0.4]], [0.5, 0.6])
        )
        jacobian = module.autograd.functional.jacobian
        looped = jacobian(function(module), inputs, create_graph=create_graph)
        at_once = jacobian(function(module), inputs, create_graph=create_graph, vectorize=True)
        for rows, others in zip(looped, at_once):
            for one, other in zip(rows, others):
                np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy())
        found.append([one.detach().numpy() for row in at_once for one in row])
        if create_graph:
            (slopes,) = module.autograd.grad(at_once[0][0].pow(2).sum(), inputs[:1])
            found[-1].append(slopes.numpy())
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs)
