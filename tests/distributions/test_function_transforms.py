"""Distributions inside vmap, func.grad, Jacobians and Hessians give what PyTorch's give."""

import pytest
import torch
from families import assert_same_outcome, outcome
from parity import lines

import backlight

# m is the module, d its distributions, t makes a tensor
CALLS = """
m.func.vmap(lambda x: d.Normal(x, 1.0).log_prob(x + 1))(m.arange(3.0))
m.func.vmap(m.func.vmap(lambda x: d.Exponential(x + 1).log_prob(x)))(m.arange(6.0).reshape(2, 3))
m.func.vmap(lambda x: d.MultivariateNormal(x, m.eye(2), validate_args=False).log_prob(x + 1))(m.ones(3, 2))
m.func.vmap(lambda x: d.kl_divergence(d.Normal(x, 1.0), d.Normal(0.0, 1.0)))(m.arange(3.0))
m.func.vmap(lambda x: d.Categorical(logits=x).log_prob(t(1)))(m.ones(3, 4))
m.func.vmap(lambda x: d.Categorical(logits=x).sample(), randomness="different")(m.zeros(3, 4))
m.func.vmap(lambda x: d.Gamma(x, 1.0, validate_args=False).rsample(), randomness="different")(m.ones(3))
m.func.vmap(lambda x: d.Gamma(x, 1.0).rsample())(m.ones(3))
m.func.grad(lambda x: d.Normal(x, 1.0).log_prob(t(1.0)))(t(0.3))
m.func.grad(lambda x: d.Gamma(x, 1.0).rsample())(t(2.0))
m.func.vmap(m.func.grad(lambda x: d.Laplace(x, 1.0).log_prob(t(1.0))))(m.arange(3.0))
m.func.hessian(lambda x: d.Gamma(x, 1.0, validate_args=False).log_prob(t(1.0)))(t(0.3))
m.func.jacrev(lambda x: d.Dirichlet(x).log_prob(t([0.2, 0.8])))(t([0.3, 2.0]))
m.func.jvp(lambda x: d.Cauchy(x, 1.0).log_prob(t(1.0)), (t(0.3),), (t(1.0),))
m.autograd.functional.hessian(lambda x: d.Beta(x, 2.0).log_prob(t(0.3)), t(2.0))
"""


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("call", lines(CALLS))
def test_transformed_function_gives_what_pytorchs_gives(call):
    found = []
    for module in (backlight, torch):
        module.manual_seed(0)
        names = {"m": module, "d": module.distributions, "t": module.tensor}
        found.append(outcome(lambda names=names: eval(call, names)))
    assert_same_outcome(*found, 1e-5, call)


def test_a_bad_parameter_of_one_element_of_the_batch_is_refused():
    d = backlight.distributions  # PyTorch's message fails while it prints the parameter
    with pytest.raises(ValueError, match="Expected parameter scale"):
        backlight.func.vmap(lambda x: d.Normal(0.0, x).mean)(backlight.tensor([1.0, -1.0]))
