"""Calls as users write them, and some that they should not write: both libraries print the same."""

import pickle

import numpy as np
import pytest
import torch
from families import FAMILIES, outcome
from parity import KINDS, lines

import backlight

# d is distributions, o the module, t makes a tensor
CALLS = """
d.Normal(t(0), t(1))
d.Normal(t(0), t(1)).sample()
d.Normal(t(0), 1.5)
d.Normal(t([0,1]), 1.5).rsample()
d.Normal(t(0.0), t(1.0, dtype=o.float64)).sample()
d.Normal(t(0.0), t(1.0, dtype=o.float64)).rsample()
d.Normal(t(0.0), t(1.0, dtype=o.float64)).log_prob(t(1.0))
d.Normal(np.float64(0.5), 1.0)
d.Normal(np.float32(0.5), 1.0).sample()
d.Normal(True, 1.0)
d.Normal(o.zeros(0), 1.0).sample((3,))
d.Normal(o.zeros(0), 1.0).log_prob(o.zeros(0))
d.Normal(o.zeros(2,0,3), 1.0).entropy()
d.Normal(0.0, 1.0).sample((0,))
d.Normal(0.0, 1.0).sample([2,3])
d.Normal(0.0, 1.0).sample(3)
d.Normal(0.0, 1.0).sample((o.tensor(3),))
d.Normal(0.0, 1.0).rsample(o.Size([2]))
d.Normal(o.zeros(3,dtype=o.float16), 1.0).log_prob(o.ones(3,dtype=o.float16))
d.Normal(o.zeros(3,dtype=o.bfloat16), 1.0).sample()
d.Normal(o.zeros(3,dtype=o.float16), 1.0).rsample()
d.Normal(o.zeros(3, requires_grad=True), 1.0)
d.Normal(o.zeros(1, requires_grad=True), 1.0)
d.Uniform(0, 1)
d.Uniform(0, 1).sample((2,))
d.Uniform(t([0]), t([1])).sample()
d.Poisson(t(3)).sample()
d.Poisson(3).sample()
d.Poisson(t([3.0])).log_prob(t([2]))
d.Bernoulli(1)
d.Bernoulli(1).sample()
d.Bernoulli(t([1,0])).sample()
d.Bernoulli(t([0.3])).log_prob(t([1]))
d.Bernoulli(probs=t([0.3, 0.6])).entropy()
d.Categorical(t([1, 2, 3])).sample((3,))
d.Categorical(t([1, 2, 3]))
d.Categorical(t([[1.0, 2], [0, 1]])).sample((4,))
d.Categorical(t([1.0, 2])).log_prob(t(1.0))
d.Categorical(t([1.0, 2])).log_prob(t([0, 1, 0]))
d.Categorical(o.ones(2,3)).log_prob(t([[0, 1], [1, 1]]))
d.Categorical(o.ones(2,3)).log_prob(t(2))
d.Categorical(logits=t([0.0, -float('inf')])).entropy()
d.Categorical(logits=o.zeros(2,0))
d.Categorical(o.zeros(3))
d.Categorical(t([0.5, float('nan')]))
d.Categorical(o.ones(2,3)).sample((0,))
d.Categorical(o.ones(2,3)).expand((4,2)).sample((5,))
d.Categorical(o.ones(2,3)).enumerate_support()
d.OneHotCategorical(o.ones(2,3)).log_prob(o.eye(3)[:2])
d.Multinomial(5, o.ones(3)).sample((2,2))
d.Multinomial(5, o.ones(2,3)).log_prob(t([[1.0,2,2],[5,0,0]]))
d.Binomial(3, t(0.5))
d.Binomial(t([3, 4]), t(0.5)).sample((3,))
d.Binomial(t([3.0, 4.0]), t([0.5])).log_prob(t([1.0, 2]))
d.Binomial(t([1.5]), t([0.5]))
d.Binomial(3, 0.5)
d.Binomial(3, logits=1.0).sample()
d.Binomial(o.ones(2, dtype=o.int64), o.full((3,2), .5))
d.Geometric(t([1.0])).log_prob(t([0.0]))
d.Geometric(0.3).sample((4,))
d.NegativeBinomial(3, t(0.5)).sample((5,))
d.NegativeBinomial(0, t([0.5])).log_prob(t([0.0]))
d.Gamma(1, 2).sample((3,))
d.Gamma(t(1), t(2)).sample()
d.Gamma(t([2.0]), 1).log_prob(1.5)
d.Gamma(t([2.0]), 1).log_prob(2)
d.Beta(1, 2).sample((3,))
d.Beta(t([0.5]), 2).mode
d.Beta(1.0, 1.0).mode
d.Beta(t(1), t(2))
d.Dirichlet(t([1, 2]))
d.Dirichlet(t([0.5, 0.5])).mode
d.Dirichlet(t([[0.5, 0.5], [2.0, 3.0]])).mode
d.StudentT(2)
d.StudentT(t([0.5, 1.5, 3.0])).variance
d.StudentT(t([0.5, 1.5, 3.0])).mean
d.FisherSnedecor(1, 2)
d.FisherSnedecor(t([1.0, 3.0]), t([2.0, 5.0])).variance
d.FisherSnedecor(t([1.0, 3.0]), t([2.0, 5.0])).mode
d.Chi2(t([2, 3])).sample()
d.Chi2(3)
d.Cauchy(0, 1).mean
d.HalfCauchy(1).mean
d.HalfNormal(1).sample((2,))
d.HalfCauchy(1.0).log_prob(2.0)
d.Exponential(1).sample((2,))
d.Exponential(t(2))
d.Laplace(0, 1).icdf(t([0.0, 0.5, 1.0]))
d.Gumbel(0, 1)
d.Gumbel(0, 1.5).sample((3,))
d.Gumbel(t(0), t(1))
d.Weibull(1, 2)
d.Weibull(1., 2.).sample((3,))
d.Pareto(1, 2)
d.Pareto(1., 2.).support
d.Pareto(t([1.0]), t([0.5])).mean
d.Pareto(t([1.0]), t([1.5])).variance
d.Kumaraswamy(1, 2)
d.Kumaraswamy(1., 2.).mode
d.VonMises(0., 1.)
d.VonMises(t(0.), t(1.)).sample((3,))
d.VonMises(t([0.0, 1.0]), t([1e-7, 50.0])).sample((3,))
d.LogisticNormal(0., 1.).sample()
d.LogisticNormal(o.zeros(3), 1.).log_prob(t([.1,.2,.3,.4]))
d.RelaxedBernoulli(0.5, t([0.3])).sample()
d.RelaxedBernoulli(t(0.5), 0.3)
d.RelaxedBernoulli(0.5, t([0.3])).log_prob(t([0.3]))
d.RelaxedOneHotCategorical(0.5, t([0.3, 0.7])).sample()
d.RelaxedOneHotCategorical(0.5, t([0.3, 0.7])).log_prob(t([0.3, 0.7]))
d.ContinuousBernoulli(0.3)
d.ContinuousBernoulli(t(0.3)).log_prob(t([0.2, 0.5]))
d.MultivariateNormal(o.zeros(2), o.eye(2)).sample((3,))
d.MultivariateNormal(o.zeros(3,2), o.eye(2)).log_prob(o.ones(4,3,2))
d.MultivariateNormal(o.zeros(2), o.eye(2).expand(5,2,2)).log_prob(o.ones(4,5,2))
d.MultivariateNormal(o.zeros(2), o.eye(2)).expand((3,)).sample()
d.MultivariateNormal(o.zeros(2), precision_matrix=o.eye(2)*2).covariance_matrix
d.MultivariateNormal(o.zeros(2), o.eye(3))
d.MultivariateNormal(o.zeros(3,2), o.eye(2).expand(4,2,2))
d.LowRankMultivariateNormal(o.zeros(3), o.ones(3,1), o.ones(3)).covariance_matrix
d.LowRankMultivariateNormal(o.zeros(3), o.ones(3,1), o.ones(3)).scale_tril
d.LowRankMultivariateNormal(o.zeros(3), o.ones(3,1), o.ones(3)).precision_matrix
d.LowRankMultivariateNormal(o.zeros(3), o.ones(3,1), o.ones(3)).expand((2,)).variance
d.Wishart(5, o.eye(2))
d.Wishart(t(5.), o.eye(2)).sample((2,))
d.Wishart(t(5.), o.eye(2)).mode
d.Wishart(t(5.), o.eye(2)).variance
d.Wishart(t([4., 5.]), precision_matrix=o.eye(2)).mean
d.Wishart(t(5.), scale_tril=o.eye(2)).entropy()
d.LKJCholesky(3)
d.LKJCholesky(3, 0.5).sample((2,))
d.LKJCholesky(3, t([0.5, 2.0])).log_prob(o.eye(3))
d.Independent(d.Normal(o.zeros(2,3), 1.), 2).expand((4,)).sample()
d.Independent(d.Normal(o.zeros(2,3), 1.), 1)
d.Independent(d.Independent(d.Normal(o.zeros(2,3), 1.), 1), 1)
d.Independent(d.Normal(o.zeros(2,3), 1.), -1)
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Normal(o.arange(3.), 1.)).mean
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Normal(o.arange(3.), 1.)).cdf(t([0.5, 1.0]))
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Normal(o.arange(3.), 1.)).sample((2,))
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Normal(o.arange(3.), 1.)).expand((2,))
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.MultivariateNormal(o.zeros(3,2), o.eye(2))).sample((2,))
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.MultivariateNormal(o.zeros(3,2), o.eye(2))).variance
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Poisson(o.ones(3))).log_prob(t(2.0))
d.TransformedDistribution(d.Normal(o.zeros(2), 1.), [])
d.TransformedDistribution(d.Normal(o.zeros(2), 1.), []).log_prob(o.zeros(2))
d.TransformedDistribution(d.Normal(0., 1.), d.AffineTransform(o.zeros(3), 2.)).batch_shape
d.TransformedDistribution(d.Normal(0., 1.), d.AffineTransform(o.zeros(3), 2.)).sample()
d.TransformedDistribution(d.Normal(o.zeros(4,2), 1.), [d.StickBreakingTransform()]).event_shape
d.TransformedDistribution(d.Normal(o.zeros(6), 1.), d.ReshapeTransform((6,), (2,3))).sample((2,))
d.TransformedDistribution(d.MultivariateNormal(o.zeros(3), o.eye(3)), d.ExpTransform()).log_prob(o.ones(2,3))
d.TransformedDistribution(d.Normal(0., 1.), d.TanhTransform()).cdf(t(0.5))
d.TransformedDistribution(d.Normal(0., 1.), d.AffineTransform(1., -1.)).icdf(t(0.9))
d.TransformedDistribution(d.Normal(0., 1.), d.TanhTransform()).mean
d.TransformedDistribution(d.Normal(0., 1.), d.TanhTransform()).entropy()
d.kl_divergence(d.Normal(0,1), d.Normal(o.zeros(3), 2.))
d.kl_divergence(d.Normal(o.zeros(2,1),1), d.Laplace(o.zeros(3), 2.))
d.kl_divergence(d.Independent(d.Normal(o.zeros(2),1),1), d.Independent(d.Normal(o.zeros(2),1),0))
d.kl_divergence(d.Uniform(o.zeros(2),1), d.Uniform(0., o.tensor([2.0, .5])))
d.kl_divergence(d.Categorical(o.ones(3)), d.Categorical(o.ones(4)))
d.kl_divergence(d.OneHotCategoricalStraightThrough(o.ones(3)), d.OneHotCategorical(o.ones(3)))
d.Normal(0.0, 1.0).cdf("a")
d.Normal(0.0, 1.0).icdf(t([0.0, 1.0, 2.0]))
d.Normal(0.0, 1.0).expand(3)
d.Normal(0.0, 1.0).expand((3,)).expand((2,))
d.Normal(o.zeros(2), 1.0).expand((3,))
d.Normal()
d.Normal(loc=0.0, scale=1.0, validate=True)
d.Exponential(rate=[1.0])
d.Dirichlet([1.0, 2.0])
d.Categorical([0.5, 0.5])
d.Categorical(0.5)
d.Normal(None, 1.0)
d.Normal(1j, 1.0)
d.Bernoulli(logits=None, probs=None)
d.Normal(0.0, 1.0).log_prob(None)
[d.Normal(0.,1.).has_rsample, d.Poisson(1.).has_rsample, d.Gumbel(0.,1.).has_rsample, d.Weibull(1.,1.).has_rsample]
"""
pytestmark = pytest.mark.filterwarnings("ignore")


def shown(value):
    """Return what is printed of a value."""
    if isinstance(value, (torch.Tensor, backlight.Tensor)):
        return repr(value), value.requires_grad, tuple(value.shape)
    return repr(value)


@pytest.mark.parametrize("call", lines(CALLS))
def test_call_gives_what_pytorch_gives(call):
    found = []
    for module in (backlight, torch):
        names = {"d": module.distributions, "o": module, "t": module.tensor, "np": np}
        module.manual_seed(0)
        found.append(outcome(lambda names=names: eval(call, names)))
    ours, theirs = found
    if isinstance(theirs, Exception):
        kind = next((kind for kind in KINDS if isinstance(theirs, kind)), type(theirs))
        assert isinstance(ours, kind)
        assert str(ours).startswith(str(theirs)[:40])
    else:
        assert shown(ours) == shown(theirs)


def name_of_node(compute) -> str:
    """Return the name of the node that computed a result, which is printed with it."""
    return type(getattr(outcome(compute), "grad_fn", None)).__name__


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_results_are_printed_with_pytorchs_nodes(family):
    torch.manual_seed(0)
    value = family.of(torch)[0].sample().numpy()
    found = []
    for module in (backlight, torch):
        one, _ = family.of(module, requires_grad=True)
        tensor = module.tensor(value)
        nodes = [name_of_node(one.rsample), name_of_node(one.entropy)]
        nodes += [name_of_node(lambda one=one, tensor=tensor: one.log_prob(tensor))]
        nodes += [name_of_node(lambda one=one, tensor=tensor: one.cdf(tensor))]
        properties = ("mean", "mode", "variance", "stddev")
        found.append(nodes + [name_of_node(lambda one=one, name=name: getattr(one, name)) for name in properties])
    assert found[0] == found[1]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_distributions_can_be_pickled(family):
    one, _ = family.of(backlight)
    again = pickle.loads(pickle.dumps(one))
    assert repr(again) == repr(one) and again.batch_shape == one.batch_shape
