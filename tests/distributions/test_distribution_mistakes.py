"""Bad parameters, values outside of the support and missing methods raise PyTorch's errors."""

import warnings

import pytest
import torch
from families import assert_same_outcome, outcome
from parity import lines

import backlight

# d is distributions, t makes a tensor, o is torch
BAD_PARAMETERS = """
d.Normal(0.0, -1.0)
d.Normal(t([0.0, float("nan")]), 1.0)
d.Normal("zero", 1.0)
d.Normal(t([0.0, 1.0]), t([1.0, 2.0, 3.0]))
d.LogNormal(0.0, 0.0)
d.Uniform(1.0, 0.0)
d.Uniform(t([0.0, 1.0]), 0.5)
d.Bernoulli(1.5)
d.Bernoulli()
d.Bernoulli(0.5, 0.5)
d.Bernoulli(logits=float("nan"))
d.Binomial(-1, t(0.5))
d.Binomial(2)
d.Categorical(t([-1.0, 2.0]))
d.Categorical(t(0.5))
d.Categorical(logits=t(0.5))
d.Categorical()
d.Categorical(t([0.5]), t([0.5]))
d.Multinomial(t(3), t([0.5, 0.5]))
d.Multinomial(-3, t([0.5, 0.5]))
d.Geometric(0.0)
d.Geometric(t([0.5, 0.0]))
d.Geometric(1.5)
d.NegativeBinomial(3, t([1.0]))
d.NegativeBinomial(-3, t([0.5]))
d.Poisson(-1.0)
d.Exponential(0.0)
d.Gamma(1.0, -1.0)
d.Beta(t([1.0, 0.0]), 1.0)
d.Dirichlet(t([1.0, 0.0]))
d.Dirichlet(t(1.0))
d.StudentT(-1.0)
d.HalfNormal(-1.0)
d.VonMises(t(0.0), t(-1.0))
d.Weibull(1.0, -1.0)
d.Pareto(-1.0, 1.0)
d.ContinuousBernoulli(t([1.5]), validate_args=True)
d.RelaxedBernoulli(t(0.5), probs=t([1.5]))
d.MultivariateNormal(t(0.0), t([[1.0]]))
d.MultivariateNormal(t([0.0]), t([1.0]))
d.MultivariateNormal(t([0.0]), precision_matrix=t([1.0]))
d.MultivariateNormal(t([0.0]), scale_tril=t([1.0]))
d.MultivariateNormal(t([0.0]))
d.MultivariateNormal(t([0.0]), t([[1.0]]), t([[1.0]]))
d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]]))
d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 0.5], [0.2, 1.0]]))
d.MultivariateNormal(t([0.0, 0.0]), scale_tril=t([[1.0, 0.5], [0.2, 1.0]]))
d.LowRankMultivariateNormal(t(0.0), t([[1.0]]), t([1.0]))
d.LowRankMultivariateNormal(t([0.0]), t([1.0]), t([1.0]))
d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0]]), t([1.0]))
d.LowRankMultivariateNormal(t([0.0]), t([[1.0]]), t([1.0, 2.0]))
d.LowRankMultivariateNormal(o.zeros(2, 1), o.zeros(3, 1, 1), o.ones(4, 1))
d.Wishart(t(1.0), t([[1.0, 0.0], [0.0, 1.0]]))
d.Wishart(t(3.0), t([1.0]))
d.Wishart(t(3.0))
d.LKJCholesky(1)
d.LKJCholesky(3, -1.0)
d.Independent(d.Normal(0.0, 1.0), 1)
d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(o.zeros(2), 1.0))
d.MixtureSameFamily(d.Categorical(o.ones(2)), 3)
d.MixtureSameFamily(d.Categorical(o.ones(3)), d.Normal(o.zeros(2), 1.0))
d.MixtureSameFamily(d.Categorical(o.ones(4, 2)), d.Normal(o.zeros(3, 2), 1.0))
d.TransformedDistribution(d.Normal(0.0, 1.0), "exp")
d.TransformedDistribution(d.Normal(0.0, 1.0), ["exp"])
d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())
d.Distribution.set_default_validate_args("yes")
"""
BAD_VALUES = """
d.Normal(0.0, 1.0).log_prob(1.0)
d.Normal(0.0, 1.0).log_prob(t(float("nan")))
d.Normal(o.zeros(2), 1.0).log_prob(o.zeros(3))
d.Bernoulli(0.5).log_prob(t(0.5))
d.Bernoulli(t([0.5, 0.5])).log_prob(t([1.0, 2.0]))
d.Binomial(3, t(0.5)).log_prob(t(4.0))
d.Categorical(o.ones(3)).log_prob(t(3))
d.Categorical(o.ones(3)).log_prob(t(-1))
d.OneHotCategorical(o.ones(3)).log_prob(t([1.0, 1.0, 0.0]))
d.OneHotCategorical(o.ones(3)).log_prob(t([1.0, 0.0]))
d.Multinomial(3, o.ones(2)).log_prob(t([2.0, 2.0]))
d.Poisson(1.0).log_prob(t(1.5))
d.Exponential(1.0).log_prob(t(-1.0))
d.Exponential(1.0).cdf(t(-1.0))
d.Gamma(1.0, 1.0).log_prob(t(-1.0))
d.Beta(1.0, 1.0).log_prob(t(1.5))
d.Dirichlet(o.ones(3)).log_prob(t([0.5, 0.4, 0.2]))
d.Uniform(0.0, 1.0).log_prob(t(2.0))
d.Uniform(0.0, 1.0).cdf(t(2.0))
d.LogNormal(0.0, 1.0).log_prob(t(-1.0))
d.HalfNormal(1.0).log_prob(t(-1.0))
d.Pareto(1.0, 1.0).log_prob(t(0.5))
d.MultivariateNormal(o.zeros(2), o.eye(2)).log_prob(o.zeros(3))
d.Independent(d.Normal(o.zeros(2), 1.0), 1).log_prob(o.zeros(3))
d.MixtureSameFamily(d.Categorical(o.ones(2)), d.Exponential(o.ones(2))).log_prob(t(-1.0))
d.Wishart(t(3.0), o.eye(2)).log_prob(t([[1.0, 2.0], [2.0, 1.0]]))
d.TransformedDistribution(d.Normal(0.0, 1.0), d.TanhTransform()).log_prob(t(1.5))
d.Binomial(t([2.0, 3.0]), t(0.5)).entropy()
d.Binomial(t([2.0, 3.0]), t(0.5)).enumerate_support()
d.Independent(d.Bernoulli(o.ones(2) * 0.5), 1).enumerate_support()
d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))
"""


@pytest.mark.parametrize("expression", lines(BAD_PARAMETERS) + lines(BAD_VALUES))
def test_mistake_is_refused_in_pytorchs_words(expression):
    found = []
    for module in (backlight, torch):
        names = {"d": module.distributions, "t": module.tensor, "o": module}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(outcome(lambda names=names: eval(expression, names)))
    assert isinstance(found[1], Exception), f"PyTorch takes it: {found[1]!r}"
    assert_same_outcome(*found, 0, expression)


UNCHECKED = """
d.Normal(0.0, -1.0, validate_args=False).mean
d.Normal(0.0, 1.0, validate_args=False).log_prob(t(float("nan")))
d.Exponential(1.0, validate_args=False).log_prob(t(-1.0))
d.Uniform(0.0, 1.0, validate_args=False).log_prob(t(2.0))
d.HalfNormal(1.0, validate_args=False).log_prob(t(-1.0))
d.HalfCauchy(1.0, validate_args=False).log_prob(t(-1.0))
d.Bernoulli(0.5, validate_args=False).log_prob(t(0.3))
d.Poisson(1.0, validate_args=False).log_prob(t(1.5))
d.Normal(o.zeros(2), 1.0, validate_args=False).expand((3, 2))._validate_args
d.Normal(o.zeros(2), 1.0).expand((3, 2))._validate_args
"""


@pytest.mark.parametrize("expression", lines(UNCHECKED))
def test_without_validation_pytorchs_values_come_out(expression):
    found = [
        outcome(lambda module=module: eval(expression, {"d": module.distributions, "t": module.tensor, "o": module}))
        for module in (backlight, torch)
    ]
    assert not isinstance(found[1], Exception)
    assert_same_outcome(*found, 1e-6, expression)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_validation_can_be_turned_off_for_all(module):
    base = module.distributions.Distribution
    before = base._validate_args
    base.set_default_validate_args(False)
    try:
        assert module.distributions.Normal(0.0, -1.0).scale.item() == -1
    finally:
        base.set_default_validate_args(before)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        module.distributions.Normal(0.0, -1.0)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_distribution_of_ones_own_inherits_what_it_does_not_write(module):
    d = module.distributions

    class Point(d.Distribution):
        arg_constraints = {"at": d.constraints.real}
        support = d.constraints.real
        has_rsample = True

        def __init__(self, at, validate_args=None):
            self.at = at
            super().__init__(at.shape, validate_args=validate_args)

        def rsample(self, sample_shape=()):
            return self.at + module.zeros(self._extended_shape(sample_shape))

    at = module.tensor([1.0, 2.0], requires_grad=True)
    one = Point(at)
    assert repr(one) == "Point(at: torch.Size([2]))"
    assert one.sample((3,)).shape == (3, 2) and not one.sample().requires_grad and one.rsample().requires_grad
    with pytest.raises(ValueError, match="Expected parameter at"):
        Point(module.tensor([float("nan")]))
    for missing in (
        lambda: one.mean,
        lambda: one.mode,
        lambda: one.stddev,
        one.entropy,
        one.enumerate_support,
        lambda: one.expand((2, 2)),
        lambda: one.log_prob(at),
        lambda: one.cdf(at),
        lambda: one.icdf(at),
    ):
        with pytest.raises(NotImplementedError):
            missing()


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_subclass_with_its_own_constructor_needs_its_own_expand(module):
    d = module.distributions

    class Standard(d.Normal):
        def __init__(self):
            super().__init__(module.zeros(2), 1.0)

    class Named(d.Normal):
        pass

    with pytest.raises(NotImplementedError, match="Subclass Standard of Normal that defines a custom __init__ method"):
        Standard().expand((3, 2))
    assert type(Named(module.zeros(2), 1.0).expand((3, 2))) is Named

    class Pair(d.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)
            self.pair = loc

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Pair, _instance)
            new.pair = self.pair.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    wide = Pair(module.zeros(2)).expand((3, 2))
    assert type(wide) is Pair and wide.pair.shape == wide.loc.shape == (3, 2) == tuple(wide.batch_shape)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_missing_declarations_warn(module):
    class Bare(module.distributions.Distribution):
        def log_prob(self, value):
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        one = Bare(validate_args=True)
    with pytest.warns(UserWarning, match="does not define `support`"):
        one.log_prob(module.tensor(1.0))
