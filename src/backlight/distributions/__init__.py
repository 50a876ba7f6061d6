"""Probability distributions: samples, densities and their gradients. PyTorch's `torch.distributions`."""

from backlight.distributions import constraints, transforms
from backlight.distributions.categoricals import (
    Bernoulli,
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from backlight.distributions.constraint_registry import biject_to, transform_to
from backlight.distributions.counts import Binomial, Geometric, NegativeBinomial, Poisson
from backlight.distributions.dirichlets import Beta, Dirichlet
from backlight.distributions.distribution import Distribution, ExponentialFamily
from backlight.distributions.exponentials import Exponential, Gumbel, Laplace, Weibull
from backlight.distributions.gammas import Chi2, FisherSnedecor, Gamma, InverseGamma
from backlight.distributions.heavy_tails import Cauchy, GeneralizedPareto, HalfCauchy, Pareto, StudentT
from backlight.distributions.independent import Independent
from backlight.distributions.intervals import ContinuousBernoulli, Kumaraswamy, Uniform
from backlight.distributions.kl import kl_divergence, register_kl
from backlight.distributions.matrices import LKJCholesky, Wishart
from backlight.distributions.mixture_same_family import MixtureSameFamily
from backlight.distributions.multivariate_normals import LowRankMultivariateNormal, MultivariateNormal
from backlight.distributions.normals import HalfNormal, LogisticNormal, LogNormal, Normal
from backlight.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from backlight.distributions.transformed_distribution import TransformedDistribution
from backlight.distributions.transforms import *
from backlight.distributions.von_mises import VonMises

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *transforms.__all__,
]
