"""Divergences of distributions of two families; infinite where the first has values that the second never takes."""

import math
from collections.abc import Callable

from backlight.distributions.categoricals import Bernoulli
from backlight.distributions.counts import Binomial, Poisson
from backlight.distributions.dirichlets import Beta
from backlight.distributions.distribution import Distribution
from backlight.distributions.exponentials import Exponential, Gumbel, Laplace
from backlight.distributions.gammas import Gamma
from backlight.distributions.heavy_tails import Pareto
from backlight.distributions.intervals import ContinuousBernoulli, Uniform
from backlight.distributions.normals import Normal
from backlight.distributions.parameters import euler_constant
from backlight.ops.elementwise.where_clamp import where
from backlight.ops.special.special_functions import xlogy
from backlight.tensor.factories import full_like
from backlight.tensor.tensor import Tensor


def _infinite(name: str) -> Callable[[Distribution, Distribution], Tensor]:
    """Return the formula that is infinite, in the shape of p's parameter of this name."""
    return lambda p, q: full_like(getattr(p, name), math.inf)


def _log_gamma_normalizer(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


def _mean_log(p: Uniform) -> Tensor:
    """Return E[log x] of uniform numbers."""
    length = p.high - p.low
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low) - length) / length


# --- from Bernoulli and Beta ------------------------------------------------------------------------------------------


def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _beta_mean(p: Beta) -> Tensor:
    return p.concentration1 / (p.concentration1 + p.concentration0)


def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * _beta_mean(p)


def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    slopes = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    rates = q.rate * p.concentration1 / (p.concentration1 + p.concentration0)
    return -p.entropy() + _log_gamma_normalizer(q) - (q.concentration - 1) * slopes + rates


def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean, variance = _beta_mean(p), q.scale.pow(2)
    normalizer = 0.5 * (variance * 2 * math.pi).log()
    square = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + normalizer + (square - q.loc * mean + q.loc.pow(2) * 0.5) / variance


def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = math.inf
    return result


# --- from continuous Bernoulli ----------------------------------------------------------------------------------------


def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    normalizer = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    moments = (p.variance + p.mean.square() - 2.0 * q.loc * p.mean) / (2.0 * q.scale.square())
    return -p.entropy() + normalizer + moments


def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    # as in PyTorch, infinite also where q holds all of [0, 1] or just that
    beyond = (q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound)
    return where(beyond, full_like(result, math.inf), result)


# --- from exponential and gamma ---------------------------------------------------------------------------------------


def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    rates = -q.concentration * ratio.log()
    shapes = q.concentration.lgamma() + q.concentration * euler_constant
    return rates + ratio + shapes - (1 + euler_constant)


def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product, loc = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - loc + loc.exp() * product / (product + 1) + product.reciprocal()


def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance, square = q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * (square * variance * 2 * math.pi).log()
    return normalizer - 1 + (square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product, loc, shape = p.rate * q.scale, q.loc / q.scale, p.concentration
    entropy = (shape - 1) * shape.digamma() - shape.lgamma() - shape
    tail = loc.exp() * (1 + product.reciprocal()).pow(-shape) - loc
    return entropy + (product.log() + shape / product) + tail


def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance, square, shape = q.scale.pow(2), p.rate.pow(2), p.concentration
    normalizer = 0.5 * (square * variance * 2 * math.pi).log() - shape - shape.lgamma()
    moments = 0.5 * (shape.pow(2) + shape) / square - q.loc * shape / p.rate + 0.5 * q.loc.pow(2)
    return normalizer + (shape - 1) * shape.digamma() + moments / variance


# --- from Gumbel, Laplace, normal -------------------------------------------------------------------------------------


def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    normalizer = (ratio / math.sqrt(2 * math.pi)).log()
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -normalizer + spread + distance - (euler_constant + 1)


def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    normalizer = 0.5 * (2 * ratio / math.pi).log()
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -normalizer + ratio + distance / variance - 1


def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean, variance, loc = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    tail = (-mean + 0.5 * variance + loc).exp()
    return -(variance.log() * 0.5) + (mean - loc) + tail - (0.5 * (1 + math.log(2 * math.pi)))


def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    scaled = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * scaled.pow(2)).exp()
    far = distance * (math.sqrt(0.5) * scaled).erf()
    return -(p.scale / q.scale).log() + (near + far) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


# --- from Pareto ------------------------------------------------------------------------------------------------------


def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    result = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    result[p.alpha <= 1] = math.inf
    return result


def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + _log_gamma_normalizer(q) + (1 - q.concentration) * mean_log + mean - 1
    result[p.alpha <= 1] = math.inf
    return result


def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    share = p.scale / (p.alpha - 1)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    variance = p.alpha * share.pow(2) / (p.alpha - 2)
    distance = (p.alpha * share - q.loc).pow(2)
    result = normalizer + (variance + distance) / (2 * q.scale.pow(2)) - 1
    result[p.alpha <= 2] = math.inf
    return result


# --- from uniform -----------------------------------------------------------------------------------------------------


def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    length = p.high - p.low
    ones = (q.concentration1 - 1) * _mean_log(p)
    of_rest = (xlogy(1 - p.high, 1 - p.high) - xlogy(1 - p.low, 1 - p.low) + length) / length
    zeros = (q.concentration0 - 1) * of_rest
    normalizer = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = zeros + normalizer - length.log() - ones
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = math.inf
    return result


def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    beyond = (p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound)
    return where(beyond, full_like(result, math.inf), result)


def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = math.inf
    return result


def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    powers = (1 - q.concentration) * _mean_log(p)
    mean = q.rate * (p.high + p.low) / 2
    result = -(p.high - p.low).log() + _log_gamma_normalizer(q) + powers + mean
    result[p.low < q.support.lower_bound] = math.inf
    return result


def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    share = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return share.log() + 0.5 * (high + low) - share * ((-high).exp() - (-low).exp())


def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    length = p.high - p.low
    normalizer = (math.sqrt(math.pi * 2) * q.scale / length).log()
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return normalizer + 0.5 * (length.pow(2) / 12 + distance) / q.scale.pow(2)


def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    normalizer = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p) * (q.alpha + 1) - normalizer
    result[p.low < q.support.lower_bound] = math.inf
    return result


_BOUNDED_OR_ABOVE = (Beta, ContinuousBernoulli, Pareto, Uniform)
_NOT_NEGATIVE = (*_BOUNDED_OR_ABOVE, Exponential, Gamma)
_INFINITE = [
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", _BOUNDED_OR_ABOVE),
    (Gamma, "concentration", _BOUNDED_OR_ABOVE),
    (Gumbel, "loc", _NOT_NEGATIVE),
    (Laplace, "loc", _NOT_NEGATIVE),
    (Normal, "loc", _NOT_NEGATIVE),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
]
ACROSS_FAMILIES = {
    **{(p, q): _infinite(name) for p, name, others in _INFINITE for q in others},
    (Bernoulli, Poisson): _bernoulli_poisson,
    (Beta, ContinuousBernoulli): _beta_continuous_bernoulli,
    (Beta, Exponential): _beta_exponential,
    (Beta, Gamma): _beta_gamma,
    (Beta, Normal): _beta_normal,
    (Beta, Uniform): _beta_uniform,
    (ContinuousBernoulli, Exponential): _continuous_bernoulli_exponential,
    (ContinuousBernoulli, Normal): _continuous_bernoulli_normal,
    (ContinuousBernoulli, Uniform): _continuous_bernoulli_uniform,
    (Exponential, Gamma): _exponential_gamma,
    (Exponential, Gumbel): _exponential_gumbel,
    (Exponential, Normal): _exponential_normal,
    (Gamma, Exponential): _gamma_exponential,
    (Gamma, Gumbel): _gamma_gumbel,
    (Gamma, Normal): _gamma_normal,
    (Gumbel, Normal): _gumbel_normal,
    (Laplace, Normal): _laplace_normal,
    (Normal, Gumbel): _normal_gumbel,
    (Normal, Laplace): _normal_laplace,
    (Pareto, Exponential): _pareto_exponential,
    (Pareto, Gamma): _pareto_gamma,
    (Pareto, Normal): _pareto_normal,
    (Uniform, Beta): _uniform_beta,
    (Uniform, ContinuousBernoulli): _uniform_continuous_bernoulli,
    (Uniform, Exponential): _uniform_exponential,
    (Uniform, Gamma): _uniform_gamma,
    (Uniform, Gumbel): _uniform_gumbel,
    (Uniform, Normal): _uniform_normal,
    (Uniform, Pareto): _uniform_pareto,
}
