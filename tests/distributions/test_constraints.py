"""Constraints check what PyTorch's check, print as PyTorch's, and lead to the same transforms."""

import numpy as np
import pytest
import torch
from families import assert_same_outcome, outcome
from parity import lines

import backlight

# c is distributions.constraints, t makes a tensor
CHECKS = """
c.boolean.check(t([0.0, 1.0, 0.5]))
c.one_hot.check(t([[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]))
c.nonnegative_integer.check(t([0.0, 1.0, -1.0, 0.5]))
c.positive_integer.check(t([0.0, 1.0, 2.0]))
c.integer_interval(0, 3).check(t([0.0, 3.0, 4.0, 1.5]))
c.real.check(t([0.0, float("nan"), float("inf")]))
c.real_vector.check(t([[0.0, float("nan")], [1.0, 2.0]]))
c.positive.check(t([0.0, 1.0]))
c.nonnegative.check(t([0.0, 1.0, -1.0]))
c.greater_than(2.0).check(t([2.0, 3.0]))
c.greater_than_eq(2.0).check(t([2.0, 1.0]))
c.less_than(2.0).check(t([2.0, 1.0]))
c.unit_interval.check(t([0.0, 1.0, 1.1]))
c.interval(-1.0, 1.0).check(t([-1.0, 1.0, 1.1]))
c.half_open_interval(-1.0, 1.0).check(t([-1.0, 1.0]))
c.simplex.check(t([[0.2, 0.8], [0.2, 0.7], [-0.2, 1.2]]))
c.multinomial(3).check(t([[1.0, 2.0], [2.0, 2.0], [-1.0, 1.0]]))
c.lower_triangular.check(t([[[1.0, 0.0], [2.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]]))
c.lower_cholesky.check(t([[[1.0, 0.0], [2.0, -1.0]], [[1.0, 0.0], [0.0, 1.0]]]))
c.corr_cholesky.check(t([[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.5, 0.5]]]))
c.square.check(t([[1.0, 2.0]]))
c.symmetric.check(t([[[1.0, 2.0], [2.0, 3.0]], [[1.0, 2.0], [2.1, 3.0]]]))
c.positive_semidefinite.check(t([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]))
c.positive_definite.check(t([[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]))
c.positive_definite.check(t([[1.0, 2.0, 3.0]]))
c.independent(c.positive, 1).check(t([[1.0, 2.0], [1.0, -1.0]]))
c.independent(c.positive, 1).check(t(1.0))
c.cat([c.positive, c.real], 0, [1, 2]).check(t([-1.0, -1.0, 2.0]))
c.stack([c.positive, c.real], 1).check(t([[-1.0, -1.0], [1.0, 2.0]]))
c.cat([c.positive], 3).check(t([1.0]))
c.MixtureSameFamilyConstraint(c.real_vector).check(t([[1.0, 2.0], [1.0, 2.0]]))
c.dependent.check(t([1.0]))
"""
DESCRIPTIONS = """
[repr(one) for one in (c.boolean, c.one_hot, c.real, c.real_vector, c.positive, c.unit_interval, c.simplex)]
[repr(one) for one in (c.greater_than(1), c.less_than(2), c.interval(0, 1), c.integer_interval(0, 3))]
[repr(one) for one in (c.half_open_interval(0.0, 1.0), c.nonnegative_integer, c.positive_integer, c.multinomial(3))]
[repr(one) for one in (c.corr_cholesky, c.positive_definite, c.square, c.dependent)]
repr(c.independent(c.independent(c.positive, 1), 2))
[one.event_dim for one in (c.real, c.real_vector, c.simplex, c.lower_cholesky, c.independent(c.real_vector, 2))]
[one.is_discrete for one in (c.real, c.boolean, c.one_hot, c.independent(c.boolean, 1), c.cat([c.real, c.boolean]))]
c.cat([c.real, c.simplex]).event_dim
c.stack([c.real, c.simplex], -2).event_dim
c.dependent.is_discrete
c.dependent.event_dim
c.dependent(is_discrete=True).is_discrete
c.dependent(event_dim=2).event_dim
c.is_dependent(c.dependent)
c.is_dependent(c.real)
c.is_dependent(d.Uniform.support)
d.Uniform.support.event_dim
c.is_dependent(d.Binomial.support)
c.independent("real", 1)
c.independent(c.real, -1)
c.independent(c.real, 1.5)
c.cat([c.real], lengths=[1, 2])
c.cat(["real"])
c.MixtureSameFamilyConstraint("real")
"""


@pytest.mark.parametrize("expression", lines(CHECKS) + lines(DESCRIPTIONS))
def test_constraint_is_pytorchs(expression):
    found = []
    for module in (backlight, torch):
        names = {"d": module.distributions, "c": module.distributions.constraints, "t": module.tensor}
        found.append(outcome(lambda names=names: eval(expression, names)))
    assert_same_outcome(*found, 0, expression)


# x is a vector of six numbers
CONSTRAINTS = """
c.real
c.real_vector
c.positive
c.nonnegative
c.greater_than(2.0)
c.greater_than_eq(-1.0)
c.less_than(2.0)
c.unit_interval
c.interval(-2.0, 3.0)
c.half_open_interval(0.0, 1.0)
c.simplex
c.corr_cholesky
c.independent(c.positive, 1)
c.cat([c.positive, c.real, c.simplex], -1, [2, 1, 3])
c.stack([c.positive] * 3 + [c.real] * 3, -1)
c.lower_cholesky
c.positive_definite
c.positive_semidefinite
c.boolean
c.dependent
"""


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("constraint", lines(CONSTRAINTS))
def test_transform_to_a_constraint_is_pytorchs_and_meets_it(constraint, registry):
    array = np.random.default_rng(0).normal(size=6)
    if "lower_cholesky" in constraint or "positive_" in constraint:
        array = np.random.default_rng(0).normal(size=(3, 3))

    def transformed(module):
        region = eval(constraint, {"c": module.distributions.constraints})
        transform = getattr(module.distributions, registry)(region)
        y = transform(module.tensor(array))
        assert region.check(y).all()
        x = transform.inv(y)
        return y, x, repr(transform)

    ours, theirs = (outcome(lambda module=module: transformed(module)) for module in (backlight, torch))
    assert_same_outcome(ours, theirs, 1e-10)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_constraint_of_ones_own_may_be_registered(module):
    d = module.distributions

    class Even(d.constraints.Constraint):
        pass

    @d.transform_to.register(Even())
    def to_even(constraint):
        return d.AffineTransform(0, 2)

    assert d.transform_to(Even())(module.tensor(3.0)).item() == 6
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        d.biject_to(Even())
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        d.biject_to.register("even", to_even)


@pytest.mark.parametrize(
    "expression",
    [
        "D.broadcast_all(1.0, torch.zeros(2, dtype=torch.float64))",
        "D.broadcast_all(1, 2)",
        "D.broadcast_all('one')",
        "D.broadcast_all(torch.zeros(2, 1), torch.ones(3))",
        "D.probs_to_logits(torch.tensor([0.0, 0.3, 1.0]), is_binary=True)",
        "D.probs_to_logits(torch.tensor([0.0, 0.3, 0.7]))",
        "D.logits_to_probs(torch.tensor([0.0, 0.3, 1.0]), is_binary=True)",
        "D.logits_to_probs(torch.tensor([0.0, 0.3, 1.0]))",
        "D.clamp_probs(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))",
        "D.tril_matrix_to_vec(torch.arange(9.0).reshape(3, 3))",
        "D.tril_matrix_to_vec(torch.arange(9.0).reshape(3, 3), -1)",
        "D.tril_matrix_to_vec(torch.arange(9.0).reshape(3, 3), 3)",
        "D.vec_to_tril_matrix(torch.arange(6.0))",
        "D.vec_to_tril_matrix(torch.arange(6.0).reshape(2, 3), -1)",
        "D.vec_to_tril_matrix(torch.arange(5.0))",
    ],
)
def test_helpers_of_the_utils_are_pytorchs(expression):
    ours, theirs = backlight.distributions.parameters, torch.distributions.utils
    assert {*ours.__all__} == {*theirs.__all__}
    found = [
        outcome(lambda module=module, utils=utils: eval(expression, {"torch": module, "D": utils}))
        for module, utils in ((backlight, ours), (torch, theirs))
    ]
    assert_same_outcome(*found, 1e-6, expression)


def test_lazy_values_are_computed_once_and_with_a_graph():
    for module in (backlight, torch):
        probs = module.tensor([0.2, 0.8], requires_grad=True)
        one = module.distributions.Bernoulli(probs)
        assert "logits" not in vars(one)
        with module.no_grad():
            first = one.logits
        assert first.requires_grad and one.logits is first
        assert isinstance(type(one).logits, property)
