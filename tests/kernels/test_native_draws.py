"""Native draws give, bit for bit, the numbers of their references, and leave the same state."""

import numpy as np
import pytest
import torch

import backlight
from backlight.kernels.random import distributions, gamma, generator, mersenne_twister, normal

FLOATS = np.dtype(np.float32), np.dtype(np.float64)
DRAWS = [
    (mersenne_twister.random_words, ()),
    *((mersenne_twister.random_units, (kind,)) for kind in FLOATS),
    *((mersenne_twister.random_choices, (p,)) for p in (0.0, 1e-17, 0.3, 0.5, 1.0)),
    *((mersenne_twister.random_noise, (p, 1 / p, kind)) for p in (0.1, 0.9) for kind in FLOATS),
    *((distributions.random_integers, limits) for limits in ((0, 1), (-5, 1000), (0, 2**28), (-(2**62), 2**62))),
    (distributions.random_order, ()),
]


@pytest.mark.parametrize(("draw", "options"), DRAWS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_draws_equal_their_references(level, draw, options):
    ours, theirs = mersenne_twister.seeded(7), mersenne_twister.seeded(7)
    for count in (0, 1, 3, 16, 617, 624, 1, 2000, 5, 12345):
        found, expected = draw(ours, count, *options), draw.__wrapped__(theirs, count, *options)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.3, 0.02), (-700.0, 3.0)])
def test_normal_numbers_equal_their_reference(level, kind, mean, std):
    ours, theirs = mersenne_twister.seeded(7), mersenne_twister.seeded(7)
    for count in (16, 17, 31, 32, 48, 1000, 1024, 123457):
        found = normal.random_normals(ours, count, mean, std, kind)
        expected = normal.random_normals.__wrapped__(theirs, count, mean, std, kind)
        assert found.dtype == kind and np.array_equal(found, expected)
        assert np.array_equal(ours, theirs)


def test_poisson_counts_equal_their_reference(level):
    rates = np.random.default_rng(0).choice([0.0, 0.01, 0.7, 9.99, 10.0, 35.0, 1e4, 1e9], 3000)
    ours, theirs = mersenne_twister.seeded(7), mersenne_twister.seeded(7)
    found = distributions.random_poisson(ours, len(rates), rates)
    assert np.array_equal(found, distributions.random_poisson.__wrapped__(theirs, len(rates), rates))
    assert np.array_equal(ours, theirs)


def test_binomial_counts_equal_their_reference(level):
    rng = np.random.default_rng(0)
    counts = rng.choice([-1.0, 0.0, 1.0, 7.0, 25.0, 400.0, 1e6, 2.5, np.inf], 3000)
    probabilities = rng.choice([-0.5, 0.0, 1e-12, 0.01, 0.3, 0.5, 0.7, 0.999, 1.0, np.nan], 3000)
    ours, theirs = mersenne_twister.seeded(7), mersenne_twister.seeded(7)
    found = distributions.random_binomials(ours, 3000, counts, probabilities)
    expected = distributions.random_binomials.__wrapped__(theirs, 3000, counts, probabilities)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(ours, theirs)


def test_gamma_numbers_equal_their_reference(level, monkeypatch):
    shapes = np.random.default_rng(0).choice([0.0, 1e-3, 0.5, 1.0, 2.5, 40.0, 1e6, np.inf, np.nan, -0.5, -1.0], 3000)
    for spare in (None, 0.25):
        ours, theirs = (generator.MersenneTwister(7) for _ in range(2))
        ours.spare = theirs.spare = spare
        found = gamma.gammas(ours, shapes)
        with monkeypatch.context() as patched:
            patched.setattr(gamma, "random_gammas", gamma.random_gammas.__wrapped__)
            expected = gamma.gammas(theirs, shapes)
        assert np.array_equal(found, expected)
        assert ours.state() == theirs.state()


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sin", "cos", "tan"])
def test_functions_of_the_c_library_equal_their_reference(name):
    numbers = np.random.default_rng(0).uniform(0, 700, (30, 100))
    numbers[0] = 0
    numbers[1:] /= np.where(numbers[1:] > 350, 1, 700)
    found = normal.by_c_library(name, numbers)
    assert np.array_equal(found, normal.by_c_library.__wrapped__(name, numbers))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999, 1e-9])
def test_dropout_draws_what_pytorch_draws(p):
    for library in (torch, backlight):
        library.manual_seed(3)
    ours = backlight.nn.functional.dropout(backlight.ones(40, 77), p)
    theirs = torch.nn.functional.dropout(torch.ones(40, 77), p)
    assert np.array_equal(ours.numpy(), theirs.numpy())
    assert backlight.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()
