"""Densities, moments, entropies and quantiles are PyTorch's, with gradients; what is missing is so in both."""

import numpy as np
import pytest
import torch
from families import FAMILIES, assert_same_outcome, outcome
from for_each import together

import backlight

EACH = [(family, dtype) for family in FAMILIES for dtype in family.dtypes]
pytestmark = [
    pytest.mark.filterwarnings("ignore:Singular sample detected"),
    pytest.mark.filterwarnings("ignore:Low df values detected"),
]
by_family = pytest.mark.parametrize(("family", "dtype"), EACH, ids=lambda value: getattr(value, "name", value))
PROPERTIES = ("mean", "mode", "variance", "stddev")
METHODS = ("entropy", "perplexity")


def tolerance_of(family, dtype: str) -> float:
    return family.tolerance if dtype == "float32" else 1e-8


def value_of(family, dtype: str) -> np.ndarray:
    """Return a sample of PyTorch's, moved a little off the edges where it is a float."""
    torch.manual_seed(2)
    return family.of(torch, dtype)[0].sample((2,)).numpy()


def with_gradients(module, family, dtype: str, compute):
    """Return compute(distribution), and the gradients of the parameters that it depends on."""
    distribution, parameters = family.of(module, dtype, requires_grad=True)
    result = compute(distribution)
    if not result.requires_grad:
        return (result,)
    grads = module.autograd.grad(result.sum(), parameters, allow_unused=True)
    return result, *[module.zeros_like(one) if got is None else got for one, got in zip(parameters, grads)]


def compared(family, dtype: str, compute, what: str, factor: float = 1.0) -> None:
    """Assert that compute(module, distribution) and its gradients are PyTorch's."""
    ours, theirs = (
        outcome(lambda module=module: with_gradients(module, family, dtype, lambda one: compute(module, one)))
        for module in (backlight, torch)
    )
    assert_same_outcome(ours, theirs, factor * tolerance_of(family, dtype), what)


@by_family
def test_log_prob_and_its_gradients_are_pytorchs(family, dtype):
    value = value_of(family, dtype)
    compared(family, dtype, lambda module, one: one.log_prob(module.tensor(value)), "log_prob", 10)


@by_family
def test_gradient_of_log_prob_in_the_value_is_pytorchs(family, dtype):
    value = value_of(family, dtype)
    found = []
    for module in (backlight, torch):
        tensor = module.tensor(value)
        if not tensor.is_floating_point():
            return
        tensor.requires_grad_()
        log_prob = family.of(module, dtype)[0].log_prob(tensor)
        if not log_prob.requires_grad:
            return
        (slope,) = module.autograd.grad(log_prob.sum(), tensor, allow_unused=True)
        found.append(module.zeros_like(tensor) if slope is None else slope)
    assert_same_outcome(*found, 10 * tolerance_of(family, dtype))


@together(name=[*PROPERTIES, *METHODS])
@by_family
def test_moments_and_entropies_are_pytorchs(family, dtype, name):
    if name in METHODS:
        compared(family, dtype, lambda module, one: getattr(one, name)(), name, 10)
    else:
        compared(family, dtype, lambda module, one: getattr(one, name), name, 10)


@by_family
def test_cdf_is_pytorchs(family, dtype):
    value = value_of(family, dtype)
    compared(family, dtype, lambda module, one: one.cdf(module.tensor(value)), "cdf", 10)


@by_family
def test_icdf_is_pytorchs(family, dtype):
    shape = value_of(family, dtype).shape
    shares = np.random.default_rng(3).uniform(0.05, 0.95, shape).astype(dtype)
    compared(family, dtype, lambda module, one: one.icdf(module.tensor(shares)), "icdf", 10)


@together(expand=[True, False])
@by_family
def test_enumerated_values_are_pytorchs(family, dtype, expand):
    compared(family, dtype, lambda module, one: one.enumerate_support(expand), "enumerate_support")


def described(distribution) -> list[str]:
    """Return what a distribution says of itself."""
    names = ("batch_shape", "event_shape", "support", "arg_constraints", "has_rsample", "has_enumerate_support")
    return [repr(distribution), *[repr(outcome(lambda name=name: getattr(distribution, name))) for name in names]]


@by_family
def test_reprs_are_pytorchs(family, dtype):
    assert described(family.of(backlight, dtype)[0]) == described(family.of(torch, dtype)[0])


@by_family
def test_expanded_distribution_is_pytorchs(family, dtype):
    value = value_of(family, dtype)[:1]
    found = []
    for module in (backlight, torch):
        distribution, _ = family.of(module, dtype)
        wide = distribution.expand((3, *distribution.batch_shape))
        results = [outcome(lambda wide=wide, name=name: getattr(wide, name)) for name in PROPERTIES]
        results += [outcome(lambda wide=wide, module=module: wide.log_prob(module.tensor(value)))]
        if not family.name.startswith("Multinomial"):  # PyTorch's has no entropy once expanded
            results += [outcome(wide.entropy)]
        found.append((described(wide), results))
    assert found[0][0] == found[1][0]
    assert_same_outcome(found[0][1], found[1][1], 10 * tolerance_of(family, dtype))


def test_expanded_multinomial_keeps_its_entropy():
    one = backlight.distributions.Multinomial(5, backlight.tensor([0.2, 0.8]))
    assert one.expand((3,)).entropy().tolist() == pytest.approx([one.entropy().item()] * 3)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_family_with_nothing_but_its_natural_parameters_has_an_entropy(module):
    exact = module.distributions.Normal(module.tensor([0.3, 1.0]), module.tensor([0.5, 2.0]))
    found = module.distributions.ExponentialFamily.entropy(exact)
    # the carrier measure of PyTorch's Normal leaves ½ log 2π out
    assert found.tolist() == pytest.approx((exact.entropy()).tolist(), abs=1e-4)


def test_a_distribution_of_numbers_has_no_batch():
    for module in (backlight, torch):
        d = module.distributions
        for one in (d.Normal(0, 1), d.Uniform(0.0, 1.0), d.Beta(1.0, 2.0), d.Gumbel(0.0, 1.0), d.Gamma(1.0, 2)):
            assert one.batch_shape == () and one.sample().shape == ()
