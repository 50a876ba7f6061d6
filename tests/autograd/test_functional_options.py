"""autograd.functional with every option, container and mistake: what PyTorch returns, records and says."""

from itertools import product

import pytest
from snippets import assert_shows_the_same

START = """
import re
D = torch.autograd.functional
a, b = torch.tensor([1., 2., 3.]), torch.tensor([0.5, 0.25, 2.])
w = torch.tensor([1., 2., 4.], requires_grad=True)
whole, scalar, one = torch.tensor([1, 2, 3]), torch.tensor(2.), torch.tensor([2.])
def show(value): print(re.sub("SumBackward[01]", "SumBackward", str(value)))
def cubes(x): return (x * x * x).sum()
def scaled(x): return (x * x).sum() * x
def line(x): return x.sum() * 2
def in_a_tuple(x): return ((x * x).sum(),)
def constant(x): return torch.ones(())
def partly_constant(x): return x * 2, torch.ones(3)
def detached(x): return x.detach() * 2
def nothing(x): return None
def not_all_tensors(x): return x * 2, 3
def double(x): return (x * x).double()
def in_place(x): x.mul_(2); return x
def closes_over(x): return (x * w).sum()
def one_row(x): return (x * x).sum().reshape(1, 1)
def fails(x): raise ValueError("no")
def rounded(x): return x.int()
def pair(x, y): return x * y, (x + y).sum()
def listed(x, y): return [x * y, (x + y).sum()]
def mixed(x, y): return (x * x * y).sum()
def first(x, y): return (x * x).sum()
"""

OF_ONE = [
    "cubes",
    "scaled",
    "line",
    "in_a_tuple",
    "constant",
    "partly_constant",
    "detached",
    "nothing",
    "not_all_tensors",
    "double",
    "in_place",
    "closes_over",
    "one_row",
    "fails",
    "rounded",
]
OF_TWO = ["pair", "listed", "mixed", "first"]
ONE = ("a", "(w,)", "[a]", "scalar", "one", "whole", "3.")
TWO = ("(a, b)", "(w, b)", "[a, b]", "(a, 3.)", "(a,)", "(a, scalar)", "()")
VECTORS = ("None", "b", "(b,)", "scalar", "(b, b)", "[b]", "3.", "w")
OPTIONS = ("", "create_graph=True", "strict=True", "create_graph=True, strict=True")


def calls(functions, inputs, *rest):
    return [f"{f}, {', '.join(parts)}" for f, *parts in product(functions, inputs, *rest)]


PRODUCTS = calls(OF_ONE, ONE, VECTORS[:2]) + calls(OF_ONE, ONE[:2], VECTORS[2:])
PRODUCTS += calls(OF_TWO, TWO, ("None", "(b, b)")) + calls(OF_TWO, TWO[:2], ("(b, scalar)", "(w, b, b)", "(b, 3.)"))
MATRICES = calls(OF_ONE, ONE) + calls(OF_TWO, TWO)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
def test_shows_what_pytorch_shows(name, options):
    refused = 0
    arguments = MATRICES if name in ("jacobian", "hessian") else PRODUCTS
    for call in arguments:
        refused += assert_shows_the_same(f"{START}show(D.{name}({call}, {options}))") is not None
    assert 0 < refused < len(arguments)


def test_the_vector_is_checked_before_the_function_runs():
    for name in ("jvp", "vhp", "hvp"):
        problem = assert_shows_the_same(f"{START}D.{name}(lambda x: print('ran') or cubes(x), a, torch.ones(2))")
        assert "v has invalid size" in str(problem)


def test_a_hessian_of_one_element_has_the_shape_of_its_inputs():
    assert assert_shows_the_same(f"{START}print(D.hessian(lambda x: (x * x).sum().reshape(1, 1), a).shape)") is None


def test_a_broadcast_gradient_is_summed_by_pytorchs_ops():
    assert (
        assert_shows_the_same(
            """
for shape in ((), (4,), (1, 4), (3, 1), (2, 1, 4), (1, 1, 1)):
    small = torch.ones(shape, requires_grad=True)
    (grad,) = torch.autograd.grad((small * torch.ones(2, 3, 4)).pow(2).sum(), small, create_graph=True)
    print(grad)
"""
        )
        is None
    )
