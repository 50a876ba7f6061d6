"""Products: integers, orders of multiplication, equations."""

import numpy as np
import pytest
import torch
from case import assert_same
from filled import BOTH, filled

import backlight
import backlight.nn.functional as F
from backlight.autograd import gradcheck
from backlight.kernels.linalg import contraction
from fuzzing.looking import shape_of_graph


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((2, 2, 3), (2, 3, 4))])
def test_integers_are_multiplied_in_their_dtype(kind, shapes):
    ours, theirs = (
        t.matmul(*[t.arange(int(np.prod(shape))).reshape(shape).to(getattr(t, kind)) for shape in shapes]) for t in BOTH
    )
    assert_same(ours, theirs, 0, 0)


STACKS = [((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((3, 4), (2, 2, 4, 5))]
STACKS += [
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((2, 1, 3, 4), (2, 4, 5)),
    ((0, 3, 4), (4,)),
    ((3, 4), (0, 4, 5)),
]


def laid_out(t, shape, rows_even: bool):
    """Return irregular numbers, whose last two dims lie in memory in the other order if rows are not to be even."""
    if rows_even or len(shape) < 3:
        return filled(t, *shape).sin()
    return filled(t, *shape[:-2], shape[-1], shape[-2]).sin().mT


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)], ids=["both", "left", "right"])
@pytest.mark.parametrize("rows_even", [True, False])
@pytest.mark.parametrize("shapes", STACKS, ids=str)
def test_a_stack_times_one_matrix_or_vector_is_folded_as_in_pytorch(shapes, rows_even, wanted):
    found = []
    for t in BOTH:
        pair = [laid_out(t, shape, rows_even).detach().requires_grad_(want) for shape, want in zip(shapes, wanted)]
        product = t.matmul(*pair)
        (product * product).sum().backward()
        found.append((shape_of_graph(product), product.is_contiguous(), product, *[one.grad for one in pair]))
    ours, theirs = found
    assert ours[:2] == theirs[:2]
    for one, other in zip(ours[2:], theirs[2:]):
        assert (one is None) == (other is None)
        if one is not None:
            assert_same(one, other, 1e-5, 1e-5)


def test_only_the_input_gets_a_gradient_where_only_it_is_asked_for():
    x, w = filled(backlight, 2, 3).requires_grad_(), filled(backlight, 4, 3)
    F.linear(x, w, filled(backlight, 4)).sum().backward()
    assert w.grad is None
    assert_same(x.grad, torch.tensor(w.numpy()).sum(0).expand(2, 3), 1e-6, 1e-6)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((2, 3, 2), (3, 1, 4))])
def test_kron_of_matrices_equals_pytorch(shapes):
    ours, theirs = (t.kron(*[filled(t, *shape) for shape in shapes]) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_beta_of_zero_keeps_nan_out():
    total = backlight.addmm(
        backlight.full((2, 2), float("nan")), filled(backlight, 2, 3), filled(backlight, 3, 2), beta=0
    )
    assert not total.isnan().any()


def test_multi_dot_takes_the_cheapest_order():
    matrices = [filled(backlight, *shape).requires_grad_() for shape in ((2, 30), (30, 3), (3, 40))]
    last = backlight.linalg.multi_dot(matrices).grad_fn.next_functions[0][0]
    assert last._saved_self.shape == (2, 3)  # the first two were multiplied first


def test_chain_matmul_warns_that_it_is_old():
    with pytest.warns(UserWarning, match="torch.chain_matmul is deprecated"):
        product = backlight.chain_matmul(filled(backlight, 2, 3), filled(backlight, 3, 4))
    assert product.shape == (2, 4)


EQUATIONS = ["ab,bc->ac", "ab,bc->ca", "abc,cd,bd->a", "ab,ab->ab", "ab,cb,ca->", "a,ba,b->ab", "abc,abd->adc"]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_contraction_equals_numpy_einsum(equation):
    sizes, rng = {"a": 3, "b": 4, "c": 5, "d": 2}, np.random.default_rng(0)
    terms, output = equation.split("->")[0].split(","), equation.split("->")[1]
    arrays = [rng.normal(size=[sizes[label] for label in term]) for term in terms]
    found = contraction.contract(arrays, tuple(terms), output)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-12)


def test_einsum_of_one_operand_is_a_view():
    x = filled(backlight, 2, 3)
    assert backlight.einsum("ij->ji", x).data_ptr() == x.data_ptr()


def test_linear_passes_gradcheck_in_fast_mode_with_broadcast_rows():
    inputs = [filled(backlight, *shape, dtype="float64").requires_grad_() for shape in ((2, 5, 3), (4, 3), (4,))]
    assert gradcheck(F.linear, inputs, fast_mode=True)
