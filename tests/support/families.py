"""One `Family` says how a distribution is made; tests/distributions runs it on PyTorch and on backlight.

    Family("Normal", lambda d, loc, scale: d.Normal(loc, scale), [normal(3), positive(3)])

`d` is `distributions` of either module, the parameters are tensors of that module: the same numbers for both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from case import as_array

import backlight


def positive(*shape: int, low: float = 0.3, high: float = 3.0) -> Callable:
    """Positive numbers between two bounds."""
    return lambda rng: rng.uniform(low, high, shape)


def unit(*shape: int) -> Callable:
    """Probabilities."""
    return lambda rng: rng.uniform(0.05, 0.95, shape)


def normal(*shape: int) -> Callable:
    """Numbers of either sign."""
    return lambda rng: rng.normal(0, 1, shape)


def given(values) -> Callable:
    """These very values."""
    return lambda rng: np.array(values, float)


def covariance(*shape: int) -> Callable:
    """Positive-definite matrices."""

    def draw(rng):
        factor = rng.normal(0, 1, shape)
        return factor @ np.swapaxes(factor, -1, -2) + np.eye(shape[-1])

    return draw


def factor(*shape: int) -> Callable:
    """Lower triangular matrices with a positive diagonal."""

    def draw(rng):
        lower = np.tril(rng.normal(0, 1, shape), -1)
        return lower + np.eye(shape[-1]) * rng.uniform(0.5, 2, shape)

    return draw


@dataclass(frozen=True)
class Family:
    """How a distribution is made, and what is special about comparing it.

    Args:
        name: the class, or `Class/what is special`.
        make: the expression, given the module's `distributions` and the parameters.
        parameters: how each parameter is drawn.
        exact: whether samples are equal to the last bit; else to the rounding of a few functions.
        tolerance: of values in float32, relative to themselves and to the largest.
        dtypes: those in which PyTorch's own does not fail.
    """

    name: str
    make: Callable
    parameters: list[Callable] = field(default_factory=list)
    exact: bool = False
    tolerance: float = 3e-5
    dtypes: tuple[str, ...] = ("float32", "float64")

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        """Return the parameters' numbers."""
        rng = np.random.default_rng(seed)
        return [draw(rng) for draw in self.parameters]

    def parameters_for(self, module, dtype: str, requires_grad: bool = False) -> list:
        """Return the parameters as tensors of a module."""
        kind = getattr(module, dtype)
        tensors = [module.tensor(array, dtype=kind) for array in self.arrays()]
        return [one.requires_grad_() for one in tensors] if requires_grad else tensors

    def of(self, module, dtype: str = "float32", requires_grad: bool = False):
        """Return the distribution of a module, and its parameters."""
        tensors = self.parameters_for(module, dtype, requires_grad)
        return self.make(module.distributions, *tensors), tensors


def transformed(d, base, *transforms):
    return d.TransformedDistribution(base, list(transforms))


FAMILIES = [
    Family("Bernoulli", lambda d, p: d.Bernoulli(p), [unit(2, 3)], exact=True),
    Family("Bernoulli/logits", lambda d, x: d.Bernoulli(logits=x), [normal(3)]),
    Family("Bernoulli/half", lambda d, p: d.Bernoulli(p), [given([0.5, 0.2, 1.0])], exact=True),
    Family("Beta", lambda d, a, b: d.Beta(a, b), [positive(2, 3), positive(3)]),
    Family(
        "Beta/large",
        lambda d, a, b: d.Beta(a, b),
        [positive(40, low=5, high=40), positive(40, low=5, high=40)],
        tolerance=2e-4,
    ),
    Family("Binomial", lambda d, p: d.Binomial(10, p), [unit(2, 3)], exact=True),
    Family("Binomial/logits", lambda d, x: d.Binomial(40, logits=x), [normal(3)]),
    Family("Categorical", lambda d, p: d.Categorical(p), [positive(2, 4)], exact=True),
    Family("Categorical/vector", lambda d, p: d.Categorical(p), [positive(4)], exact=True),
    Family("Categorical/logits", lambda d, x: d.Categorical(logits=x), [normal(2, 3, 4)]),
    Family("Cauchy", lambda d, m, s: d.Cauchy(m, s), [normal(3), positive(2, 1)], exact=True),
    Family("Chi2", lambda d, k: d.Chi2(k), [positive(2, 3)], exact=True),
    Family("ContinuousBernoulli", lambda d, p: d.ContinuousBernoulli(p), [unit(2, 3)]),
    Family(
        "ContinuousBernoulli/half",
        lambda d, p: d.ContinuousBernoulli(p),
        [given([0.4995, 0.5, 0.51, 0.2])],
        tolerance=5e-4,
    ),
    Family("ContinuousBernoulli/logits", lambda d, x: d.ContinuousBernoulli(logits=x), [given([-3.0, 1.5, 2.0])]),
    Family("Dirichlet", lambda d, a: d.Dirichlet(a), [positive(2, 3)]),
    Family("Dirichlet/large", lambda d, a: d.Dirichlet(a), [positive(30, 4, low=0.1, high=50)], tolerance=2e-4),
    Family("Exponential", lambda d, r: d.Exponential(r), [positive(2, 3)], exact=True),
    Family("FisherSnedecor", lambda d, a, b: d.FisherSnedecor(a, b), [positive(3, high=6), positive(2, 3, high=9)]),
    Family("Gamma", lambda d, a, r: d.Gamma(a, r), [positive(2, 3), positive(3)], exact=True),
    Family("Gamma/wide", lambda d, a: d.Gamma(a, 1.0), [positive(60, low=0.01, high=40)], exact=True),
    Family(
        "GeneralizedPareto",
        lambda d, m, s, c: d.GeneralizedPareto(m, s, c),
        [normal(3), positive(3), unit(3)],
        dtypes=("float32",),
    ),
    Family("Geometric", lambda d, p: d.Geometric(p), [unit(2, 3)]),
    Family("Geometric/logits", lambda d, x: d.Geometric(logits=x), [normal(3)]),
    Family("Gumbel", lambda d, m, s: d.Gumbel(m, s), [normal(2, 3), positive(3)]),
    Family("HalfCauchy", lambda d, s: d.HalfCauchy(s), [positive(3)], exact=True),
    Family("HalfNormal", lambda d, s: d.HalfNormal(s), [positive(2, 3)], exact=True),
    Family("Independent", lambda d, m, s: d.Independent(d.Normal(m, s), 1), [normal(2, 3), positive(3)], exact=True),
    Family("Independent/0", lambda d, p: d.Independent(d.Bernoulli(p), 0), [unit(2, 3)], exact=True),
    Family("InverseGamma", lambda d, a, r: d.InverseGamma(a, r), [positive(3, low=1.1, high=5), positive(2, 3)]),
    Family("Kumaraswamy", lambda d, a, b: d.Kumaraswamy(a, b), [positive(3), positive(2, 3)]),
    Family("LKJCholesky", lambda d, c: d.LKJCholesky(3, c), [positive(2)]),
    Family("Laplace", lambda d, m, s: d.Laplace(m, s), [normal(2, 3), positive(3)]),
    Family("LogNormal", lambda d, m, s: d.LogNormal(m, s), [normal(2, 3), positive(3, high=1)]),
    Family("LogisticNormal", lambda d, m, s: d.LogisticNormal(m, s), [normal(2, 3), positive(3)]),
    Family(
        "LowRankMultivariateNormal",
        lambda d, m, w, v: d.LowRankMultivariateNormal(m, w, v),
        [normal(2, 4), normal(2, 4, 2), positive(4)],
    ),
    Family(
        "MixtureSameFamily",
        lambda d, w, m, s: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, s)),
        [positive(2, 3), normal(2, 3), positive(3)],
        exact=True,
    ),
    Family(
        "MixtureSameFamily/vectors",
        lambda d, x, m, s: d.MixtureSameFamily(d.Categorical(logits=x), d.Independent(d.Normal(m, s), 1)),
        [normal(5, 3), normal(5, 3, 2), positive(5, 3, 2)],
    ),
    Family("Multinomial", lambda d, p: d.Multinomial(8, p), [positive(2, 4)], exact=True),
    Family("Multinomial/logits", lambda d, x: d.Multinomial(3, logits=x), [normal(4)]),
    Family("MultivariateNormal", lambda d, m, c: d.MultivariateNormal(m, c), [normal(2, 3), covariance(3, 3)]),
    Family(
        "MultivariateNormal/precision",
        lambda d, m, c: d.MultivariateNormal(m, precision_matrix=c),
        [normal(3), covariance(2, 3, 3)],
        tolerance=1e-4,
    ),
    Family(
        "MultivariateNormal/scale_tril",
        lambda d, m, f: d.MultivariateNormal(m, scale_tril=f),
        [normal(4, 1, 3), factor(2, 3, 3)],
    ),
    Family("NegativeBinomial", lambda d, n, p: d.NegativeBinomial(n, p), [positive(3, high=9), unit(2, 3)]),
    Family("NegativeBinomial/logits", lambda d, x: d.NegativeBinomial(5, logits=x), [normal(3)]),
    Family("Normal", lambda d, m, s: d.Normal(m, s), [normal(2, 3), positive(3)], exact=True),
    Family("Normal/numbers", lambda d: d.Normal(0.5, 2), exact=True),
    Family("OneHotCategorical", lambda d, p: d.OneHotCategorical(p), [positive(2, 4)], exact=True),
    Family(
        "OneHotCategoricalStraightThrough",
        lambda d, x: d.OneHotCategoricalStraightThrough(logits=x),
        [normal(2, 4)],
    ),
    Family("Pareto", lambda d, s, a: d.Pareto(s, a), [positive(3), positive(2, 3, low=1.5, high=5)]),
    Family("Poisson", lambda d, r: d.Poisson(r), [positive(2, 3, high=20)], exact=True),
    Family("RelaxedBernoulli", lambda d, t, p: d.RelaxedBernoulli(t, p), [positive(1), unit(2, 3)]),
    Family(
        "RelaxedOneHotCategorical",
        lambda d, t, x: d.RelaxedOneHotCategorical(t, logits=x),
        [positive(1), normal(2, 3)],
    ),
    Family("StudentT", lambda d, k, m, s: d.StudentT(k, m, s), [positive(4, high=5), normal(4), positive(2, 4)]),
    Family(
        "Tanh",
        lambda d, m, s: transformed(d, d.Normal(m, s), d.TanhTransform(cache_size=1)),
        [normal(3), positive(3, high=1)],
        tolerance=2e-3,
    ),
    Family(
        "Affine of exp",
        lambda d, m: transformed(d, d.Normal(m, 1.0), d.ExpTransform(), d.AffineTransform(1.0, -2.0)),
        [normal(3)],
    ),
    Family("Uniform", lambda d, a, b: d.Uniform(-a, b), [positive(3), positive(2, 3)], exact=True),
    Family("VonMises", lambda d, m, k: d.VonMises(m, k), [normal(3), positive(2, 3, high=8)], tolerance=1e-4),
    Family("Weibull", lambda d, s, k: d.Weibull(s, k), [positive(3), positive(2, 3)]),
    Family("Wishart", lambda d, n, c: d.Wishart(n, c), [positive(2, low=3.5, high=7), covariance(3, 3)]),
]


def outcome(compute: Callable):
    """Return what a function gives, or the exception that it raises."""
    try:
        return compute()
    except Exception as problem:
        return problem


def assert_same_outcome(ours, theirs, tolerance: float, what: str = "result") -> None:
    """Assert that both are equal: tensors in shape, dtype and value, or exceptions of one kind and the same words.

    Args:
        tolerance: of each value, relative to itself and, a hundredth of it, to the largest or to 1.
    """
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{what}: {ours!r}; PyTorch raises {theirs!r}"
        kinds = [kind for kind in type(theirs).__mro__ if kind in type(ours).__mro__]
        assert kinds[0] is not Exception, f"{what}: {ours!r}; PyTorch raises {theirs!r}"
        said = str(theirs).replace("torch.", "backlight.")
        assert "<class" in said or str(ours).replace("torch.", "backlight.").startswith(said), f"{what}: {ours}, {said}"
        return
    assert not isinstance(ours, Exception), f"{what}: {ours!r}; PyTorch gives {theirs!r}"
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for number, (one, other) in enumerate(zip(ours, theirs)):
            assert_same_outcome(one, other, tolerance, f"{what} {number}")
        return
    if not isinstance(theirs, torch.Tensor):
        assert repr(ours) == repr(theirs), f"{what}: {ours!r}, PyTorch gives {theirs!r}"
        return
    assert isinstance(ours, backlight.Tensor), f"{what}: {ours!r}, PyTorch gives {theirs!r}"
    assert str(ours.dtype) == str(theirs.dtype), f"{what}: {ours.dtype}, PyTorch gives {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape}, PyTorch gives {theirs.shape}"
    mine, other = as_array(ours), as_array(theirs)
    largest = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * 1e-2 * max(largest, 1), err_msg=what)
