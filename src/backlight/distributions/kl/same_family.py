"""Divergences of two distributions of one family of single numbers, or of Dirichlet vectors."""

import math

from backlight.autograd import grad
from backlight.distributions.categoricals import Bernoulli, Categorical, OneHotCategorical
from backlight.distributions.counts import Binomial, Geometric, Poisson
from backlight.distributions.dirichlets import Beta, Dirichlet
from backlight.distributions.distribution import ExponentialFamily
from backlight.distributions.exponentials import Exponential, Gumbel, Laplace
from backlight.distributions.gammas import Gamma
from backlight.distributions.heavy_tails import Cauchy, Pareto
from backlight.distributions.intervals import ContinuousBernoulli, Uniform
from backlight.distributions.normals import HalfNormal, Normal
from backlight.distributions.parameters import euler_constant, sum_rightmost
from backlight.errors import UnsupportedError
from backlight.nn.functional import softplus
from backlight.tensor.tensor import Tensor


def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = math.inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = math.inf
    zeros[p.probs == 1] = 0
    return ones + zeros


def _beta(p: Beta, q: Beta) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    of_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    of_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    ones = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zeros = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return of_q - of_p + ones + zeros + (total_q - total_p) * total_p.digamma()


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise UnsupportedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    kl[p.total_count > q.total_count] = math.inf
    return kl


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = math.inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Source: Chyzak and Nielsen, A closed-form formula for the KL divergence between Cauchy distributions, 2019."""
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    of_p = p._cont_bern_log_norm() + (-p.probs).log1p()
    of_q = -q._cont_bern_log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + of_p + of_q


def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    totals = total_p.lgamma() - total_q.lgamma()
    parts = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slopes = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return totals - parts + ((p.concentration - q.concentration) * slopes).sum(-1)


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer: F(θ_q) − F(θ_p) − ⟨θ_q − θ_p, ∇F(θ_p)⟩."""
    if type(p) is not type(q):
        raise UnsupportedError(
            "The cross KL-divergence between different exponential families cannot                             be "
            "computed using Bregman divergences"
        )
    of_p = [one.detach().requires_grad_() for one in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    slopes = grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for one, other, slope in zip(of_p, of_q, slopes):
        result = result - sum_rightmost((other - one) * slope, len(q.event_shape))
    return result


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    normalizers = q.concentration.lgamma() - p.concentration.lgamma()
    shapes = (p.concentration - q.concentration) * p.concentration.digamma()
    return rates + normalizers + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    scales, of_q, of_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    expected = (of_q + (1 + scales).lgamma() - of_p).exp()
    return (-scales.log() - of_q + of_p) + scales * euler_constant + expected - (1 + euler_constant)


def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


def _normal(p: Normal, q: Normal) -> Tensor:
    variances = (p.scale / q.scale).pow(2)
    return 0.5 * (variances + ((p.loc - q.loc) / q.scale).pow(2) - 1 - variances.log())


def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


def _pareto(p: Pareto, q: Pareto) -> Tensor:
    alphas = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - alphas.log() + alphas - 1
    result[p.support.lower_bound < q.support.lower_bound] = math.inf
    return result


def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = math.inf
    return result


SAME_FAMILY = {
    (Bernoulli, Bernoulli): _bernoulli,
    (Beta, Beta): _beta,
    (Binomial, Binomial): _binomial,
    (Categorical, Categorical): _categorical,
    (Cauchy, Cauchy): _cauchy,
    (ContinuousBernoulli, ContinuousBernoulli): _continuous_bernoulli,
    (Dirichlet, Dirichlet): _dirichlet,
    (Exponential, Exponential): _exponential,
    (ExponentialFamily, ExponentialFamily): _exponential_family,
    (Gamma, Gamma): _gamma,
    (Geometric, Geometric): _geometric,
    (Gumbel, Gumbel): _gumbel,
    (HalfNormal, HalfNormal): _half_normal,
    (Laplace, Laplace): _laplace,
    (Normal, Normal): _normal,
    (OneHotCategorical, OneHotCategorical): _one_hot_categorical,
    (Pareto, Pareto): _pareto,
    (Poisson, Poisson): _poisson,
    (Uniform, Uniform): _uniform,
}
