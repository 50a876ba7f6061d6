"""Divergences of all pairs of families are PyTorch's, with gradients, or missing in both."""

import warnings

import numpy as np
import pytest
import torch
from families import assert_same_outcome, covariance, factor, normal, outcome, positive, unit

import backlight
from backlight.distributions.kl import _KL_REGISTRY

# for each class two distributions: what is compared is every ordered pair of classes
CLASSES = {
    "Bernoulli": (lambda d, p: d.Bernoulli(p), [unit(4)]),
    "Beta": (lambda d, a, b: d.Beta(a, b), [positive(4), positive(4)]),
    "Binomial": (lambda d, p: d.Binomial(5, p), [unit(4)]),
    "Categorical": (lambda d, p: d.Categorical(p), [positive(4, 3)]),
    "Cauchy": (lambda d, m, s: d.Cauchy(m, s), [normal(4), positive(4)]),
    "Chi2": (lambda d, k: d.Chi2(k), [positive(4)]),
    "ContinuousBernoulli": (lambda d, p: d.ContinuousBernoulli(p), [unit(4)]),
    "Dirichlet": (lambda d, a: d.Dirichlet(a), [positive(4, 3)]),
    "Exponential": (lambda d, r: d.Exponential(r), [positive(4)]),
    "Gamma": (lambda d, a, r: d.Gamma(a, r), [positive(4), positive(4)]),
    "Geometric": (lambda d, p: d.Geometric(p), [unit(4)]),
    "Gumbel": (lambda d, m, s: d.Gumbel(m, s), [normal(4), positive(4)]),
    "HalfNormal": (lambda d, s: d.HalfNormal(s), [positive(4)]),
    "Independent": (lambda d, m, s: d.Independent(d.Normal(m, s), 1), [normal(4, 2), positive(4, 2)]),
    "InverseGamma": (lambda d, a, r: d.InverseGamma(a, r), [positive(4), positive(4)]),
    "Laplace": (lambda d, m, s: d.Laplace(m, s), [normal(4), positive(4)]),
    "LogNormal": (lambda d, m, s: d.LogNormal(m, s), [normal(4), positive(4)]),
    "LowRankMultivariateNormal": (
        lambda d, m, w, v: d.LowRankMultivariateNormal(m, w, v),
        [normal(4, 3), normal(4, 3, 2), positive(4, 3)],
    ),
    "MultivariateNormal": (lambda d, m, f: d.MultivariateNormal(m, scale_tril=f), [normal(4, 3), factor(3, 3)]),
    "Normal": (lambda d, m, s: d.Normal(m, s), [normal(4), positive(4)]),
    "OneHotCategorical": (lambda d, x: d.OneHotCategorical(logits=x), [normal(4, 3)]),
    "Pareto": (lambda d, s, a: d.Pareto(s, a), [positive(4), positive(4, low=0.5, high=4)]),
    "Poisson": (lambda d, r: d.Poisson(r), [positive(4)]),
    "StudentT": (lambda d, k: d.StudentT(k), [positive(4)]),
    "Uniform": (lambda d, a, b: d.Uniform(a, a + b), [unit(4), positive(4)]),
    "Uniform inside": (lambda d, a, b: d.Uniform(0.1 * a, 0.2 + 0.7 * b), [unit(4), unit(4)]),
    "Wishart": (lambda d, n, c: d.Wishart(n, c), [positive(1, low=4, high=6), covariance(2, 2)]),
}
PAIRS = [(p, q) for p in CLASSES for q in CLASSES]


def made(module, name: str, seed: int):
    make, draws = CLASSES[name]
    rng = np.random.default_rng(seed)
    parameters = [module.tensor(draw(rng), dtype=module.float64, requires_grad=True) for draw in draws]
    return make(module.distributions, *parameters), parameters


def divergence(module, p: str, q: str):
    """Return KL(p ‖ q), and the gradients of all parameters where it is finite."""
    (first, of_first), (second, of_second) = made(module, p, 1), made(module, q, 2)
    kl = module.distributions.kl_divergence(first, second)
    if not kl.requires_grad or not module.isfinite(kl).all():
        return (kl,)
    parameters = of_first + of_second
    grads = module.autograd.grad(kl.sum(), parameters, allow_unused=True)
    return kl, *[module.zeros_like(one) if grad is None else grad for one, grad in zip(parameters, grads)]


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=lambda name: name)
def test_divergence_is_pytorchs(p, q):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (outcome(lambda module=module: divergence(module, p, q)) for module in (backlight, torch))
    if isinstance(theirs, NotImplementedError):
        assert isinstance(ours, NotImplementedError)
        assert str(ours).startswith(str(theirs))
        return
    assert_same_outcome(ours, theirs, 1e-8, f"KL({p}, {q})")


def test_the_same_pairs_are_registered():
    def names(registry):
        return {(p.__name__, q.__name__) for p, q in registry}

    assert names(_KL_REGISTRY) == names(torch.distributions.kl._KL_REGISTRY)


def test_every_registered_pair_is_compared():
    registered = {(p.__name__, q.__name__) for p, q in _KL_REGISTRY} - {
        ("ExponentialFamily", "ExponentialFamily"),  # by Chi2, which has no formula of its own, and Wishart
        ("TransformedDistribution", "TransformedDistribution"),  # by LogNormal
    }
    assert registered <= set(PAIRS)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_registered_formula_is_found_for_subclasses(module):
    d = module.distributions

    class Narrow(d.Normal):
        pass

    @d.register_kl(Narrow, d.Normal)
    def of_narrow(p, q):
        return module.tensor(42.0)

    narrow, wide = Narrow(0.0, 1.0), d.Normal(0.0, 1.0)
    assert d.kl_divergence(narrow, wide).item() == 42
    assert d.kl_divergence(narrow, Narrow(0.0, 1.0)).item() == 42
    assert d.kl_divergence(wide, narrow).item() == 0


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_ambiguous_classes_warn(module):
    d = module.distributions

    class Mine(d.Normal):
        pass

    d.register_kl(Mine, d.Normal)(lambda p, q: module.tensor(1.0))
    d.register_kl(d.Normal, Mine)(lambda p, q: module.tensor(2.0))
    with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Mine, Mine\). Please register_kl\(Mine, Mine\)"):
        assert d.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 1


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_only_classes_are_registered(module):
    with pytest.raises(TypeError):
        module.distributions.register_kl("Normal", module.distributions.Normal)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_impossible_values_have_an_infinite_divergence(module):
    d, kl = module.distributions, module.distributions.kl_divergence
    sure = d.Bernoulli(module.tensor([0.0, 1.0, 0.5, 0.5]))
    assert kl(sure, d.Bernoulli(module.tensor([0.0, 1.0, 0.0, 1.0]))).tolist() == [0, 0, float("inf"), float("inf")]
    categories = d.Categorical(module.tensor([0.5, 0.5, 0.0]))
    assert kl(categories, d.Categorical(module.tensor([1.0, 0.0, 0.0]))).item() == float("inf")
    few, many = (d.Binomial(count, module.tensor([0.5])) for count in (3, 4))
    assert kl(many, few).tolist() == [float("inf")]
    with pytest.raises(NotImplementedError, match=r"q.total_count > p.total_count is not implemented"):
        kl(few, many)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_vectors_of_two_sizes_have_no_divergence(module):
    d = module.distributions
    small, large = (d.MultivariateNormal(module.zeros(n), module.eye(n)) for n in (2, 3))
    with pytest.raises(
        ValueError, match=r"KL-divergence between two Multivariate Normals with .* different event shapes"
    ):
        d.kl_divergence(small, large)
