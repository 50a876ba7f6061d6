"""jacfwd pushes all columns through one call of the function, whose values have no batch; torch.func is the oracle."""

import numpy as np
import pytest
import torch

import backlight
from backlight.engine.tensor_state import TensorState

PYTORCHS_OWN = (
    "ignore:`torch.jit:DeprecationWarning",
    "ignore:Attempted to insert a get_attr Node:UserWarning",
    "ignore:There is a performance drop:UserWarning",
)
pytestmark = [pytest.mark.filterwarnings(one) for one in PYTORCHS_OWN]
X = np.random.default_rng(0).normal(size=4)
W = np.random.default_rng(1).normal(size=(4, 4))


def with_a_view_made_before(m, x):
    whole = m.zeros(4, dtype=m.float64)
    part = whole[1:]
    whole.copy_(x * x)
    return part.exp() * whole[0]


def with_writes(m, x):
    y = x.clone()
    y[1:].mul_(x[0])
    y[0] = 3
    return y.sort().values


def with_memory_shown_again(m, x):
    return (x * x).as_strided((2, 2), (1, 1)) * x[0]


def with_a_transposed_tangent(m, x):
    return m.outer(x, x).t().softmax(-1).cumsum(0).reshape(-1).view(2, 8)


def with_several_outputs(m, x):
    return m.linalg.inv(m.outer(x, x) + m.eye(4, dtype=m.float64)).logsumexp(0), x.sum(), m.ones(2, dtype=m.float64)


def with_vmap_inside(m, x):
    return m.vmap(lambda one: one.sin() * x.sum())(x)


def with_grad_inside(m, x):
    return m.func.grad(lambda y: (y**3).sum() * x.prod())(x)


def with_a_layer(m, x):
    return (m.tensor(W) @ x).tanh()


FUNCTIONS = (
    with_a_view_made_before,
    with_writes,
    with_memory_shown_again,
    with_a_transposed_tangent,
    with_several_outputs,
    with_vmap_inside,
    with_grad_inside,
    with_a_layer,
)
TRANSFORMS = {
    "jacfwd": lambda m, f: m.func.jacfwd(f),
    "jacfwd of jacfwd": lambda m, f: m.func.jacfwd(m.func.jacfwd(f)),
    "jacfwd of jacrev": lambda m, f: m.func.jacfwd(m.func.jacrev(f)),
    "jacrev of jacfwd": lambda m, f: m.func.jacrev(m.func.jacfwd(f)),
}
of_batches = [one for one in FUNCTIONS if one is not with_a_view_made_before]  # vmap has no room in it, nor PyTorch's


def leaves(value) -> list:
    return [one for part in value for one in leaves(part)] if isinstance(value, tuple) else [value]


def assert_same(ours, theirs) -> None:
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-8, 1e-10)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_jacobians_are_pytorchs(function, transform):
    found = [TRANSFORMS[transform](m, lambda x, m=m: function(m, x))(m.tensor(X)) for m in (backlight, torch)]
    assert_same(*found)


@pytest.mark.parametrize("function", of_batches)
def test_vmap_of_jacfwd_is_pytorchs(function):
    batch = np.stack([X, 2 * X])
    found = [m.vmap(m.func.jacfwd(lambda x, m=m: function(m, x)))(m.tensor(batch)) for m in (backlight, torch)]
    assert_same(*found)


def test_values_are_computed_once_and_have_no_batch():
    seen = []

    def function(x):
        out = x.sin()
        seen.append((type(out), type(out._data)))
        return out, out

    found, aux = backlight.func.jacfwd(function, has_aux=True)(backlight.tensor(X))
    assert seen == [(backlight.Tensor, np.ndarray)]
    assert isinstance(aux, TensorState)
    np.testing.assert_array_equal(aux.numpy(), np.sin(X))
    np.testing.assert_allclose(found.numpy(), np.diag(np.cos(X)))


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 10])
def test_chunks_give_the_same_columns(chunk_size):
    x = backlight.tensor(X)
    whole = backlight.func.jacfwd(lambda x: x.cumprod(0))(x)
    assert backlight.equal(backlight.func.jacfwd(lambda x: x.cumprod(0), chunk_size=chunk_size)(x), whole)
    with pytest.raises(ValueError, match="jacfwd: `chunk_size` should be greater than 0"):
        backlight.func.jacfwd(lambda x: x, chunk_size=0)


@pytest.mark.parametrize("draw", [lambda m, x: m.rand_like(x) * x, lambda m, x: m.nn.functional.dropout(x, 0.5)])
def test_random_numbers_are_what_randomness_says(draw):
    for m in (torch, backlight):
        with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
            m.func.jacfwd(lambda x, m=m: draw(m, x))(m.tensor(X))
    x = backlight.tensor(np.ones(16))
    backlight.manual_seed(0)
    factors = draw(backlight, x)
    backlight.manual_seed(0)
    same = backlight.func.jacfwd(lambda x: draw(backlight, x), randomness="same")(x)
    assert backlight.equal(same, backlight.diag(factors))
    apart = backlight.func.jacfwd(lambda x: draw(backlight, x), randomness="different")(x)
    assert not backlight.equal(apart.diag(), factors)
