"""Transforms, their inverses and Jacobians are PyTorch's."""

import pickle

import numpy as np
import pytest
import torch
from families import assert_same_outcome, outcome
from parity import lines

import backlight

# d is distributions, t makes a float64 tensor; x is what is transformed
ELEMENTWISE = """
d.ExpTransform()
d.AffineTransform(1.0, 2.0)
d.AffineTransform(t([1.0, 2.0, 3.0]), t([-1.0, 2.0, 0.5]))
d.AffineTransform(0.5, t([-1.0, 2.0, 0.5]), event_dim=1)
d.SigmoidTransform()
d.TanhTransform()
d.SoftplusTransform()
d.AbsTransform()
d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.TanhTransform()])
d.ComposeTransform([])
d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t(2.0)), d.ExpTransform().inv])
d.IndependentTransform(d.ExpTransform(), 1)
d.ReshapeTransform((3,), (3, 1))
d.SoftmaxTransform()
d.StickBreakingTransform()
d.CorrCholeskyTransform()
d.CatTransform([d.ExpTransform(), d.SigmoidTransform()], dim=-1, lengths=[1, 2])
d.CatTransform([d.ExpTransform(), d.SigmoidTransform()], dim=0)
d.CatTransform([d.ExpTransform(), d.StickBreakingTransform()], dim=-1, lengths=[1, 2])
d.StackTransform([d.ExpTransform(), d.SigmoidTransform()], dim=0)
d.CumulativeDistributionTransform(d.Normal(0.0, 2.0))
d.CumulativeDistributionTransform(d.Laplace(t([0.0, 1.0, 2.0]), 2.0))
d.ComposeTransform([d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), d.SigmoidTransform().inv])
d.ComposeTransform([d.StickBreakingTransform(), d.AffineTransform(0.0, 2.0)])
"""
POSITIVE = """
d.PowerTransform(2.0)
d.PowerTransform(t([0.5, 2.0, -1.0]))
d.ExpTransform().inv
d.SoftplusTransform().inv
d.CumulativeDistributionTransform(d.Exponential(2.0))
"""
SQUARE = """
d.LowerCholeskyTransform()
d.transforms.PositiveDefiniteTransform()
"""
ROWS = [
    *[(text, np.random.default_rng(0).normal(size=(2, 3))) for text in lines(ELEMENTWISE)],
    *[(text, np.random.default_rng(0).uniform(0.2, 2, size=(2, 3))) for text in lines(POSITIVE)],
    *[(text, np.random.default_rng(0).normal(size=(2, 3, 3))) for text in lines(SQUARE)],
]
by_transform = pytest.mark.parametrize(
    ("text", "array"), ROWS, ids=lambda value: value if isinstance(value, str) else ""
)


def made(module, text: str):
    def double(values):
        return module.tensor(values, dtype=module.float64)

    return eval(text, {"d": module.distributions, "t": double})


def both(compute) -> list:
    return [outcome(lambda module=module: compute(module)) for module in (backlight, torch)]


@by_transform
def test_values_inverses_and_jacobians_are_pytorchs(text, array):
    def compute(module):
        transform, x = made(module, text), module.tensor(array, requires_grad=True)
        y = transform(x)
        slopes = module.autograd.grad(y.square().sum(), x)
        jacobian = outcome(lambda: transform.log_abs_det_jacobian(x, y))
        (of_jacobian,) = (
            [jacobian]
            if isinstance(jacobian, Exception) or not jacobian.requires_grad
            else module.autograd.grad(jacobian.sum(), x)
        )
        return y, slopes, transform.inv(y), jacobian, of_jacobian

    assert_same_outcome(*both(compute), 1e-8)


@by_transform
def test_descriptions_are_pytorchs(text, array):
    def compute(module):
        transform = made(module, text)
        shape = tuple(transform(module.tensor(array)).shape)
        names = ("event_dim", "bijective", "sign")
        return [
            repr(transform),
            repr(transform.inv),
            repr(transform.domain),
            repr(transform.codomain),
            *[outcome(lambda name=name: getattr(transform, name)) for name in names],
            tuple(transform.forward_shape(array.shape)),
            tuple(transform.inverse_shape(shape)),
        ]

    ours, theirs = both(compute)
    if text.startswith(
        ("d.SoftmaxTransform", "d.Abs", "d.transforms", "d.Lower", "d.Corr", "d.Cat", "d.Stack", "d.Reshape")
    ):
        assert isinstance(ours[6], NotImplementedError) and isinstance(theirs[6], NotImplementedError)  # sign
        ours[6] = theirs[6] = None
    assert_same_outcome(ours, theirs, 0)


@by_transform
def test_inverse_of_the_inverse_is_the_transform(text, array):
    transform = made(backlight, text)
    assert transform.inv.inv is transform
    assert transform == transform
    assert transform.inv == transform.inv


def test_transforms_are_equal_where_pytorchs_are():
    texts = [text for text, _ in ROWS]
    equal = [
        [[made(module, one) == made(module, other) for other in texts] for one in texts]
        for module in (backlight, torch)
    ]
    assert equal[0] == equal[1]


MISTAKES = """
d.TanhTransform(cache_size=2)
d.ReshapeTransform((2, 3), (4,))
d.ReshapeTransform((2, 3), (6,)).forward_shape((3, 2))
d.ReshapeTransform((2, 3), (6,)).forward_shape((3,))
d.ReshapeTransform((2, 3), (6,)).inverse_shape((7,))
d.IndependentTransform(d.ExpTransform(), 2)(t([1.0]))
d.IndependentTransform(d.ExpTransform(), 2).inv(t([1.0]))
d.StickBreakingTransform().forward_shape(())
d.StickBreakingTransform().inverse_shape(())
d.SoftmaxTransform().forward_shape(())
d.CorrCholeskyTransform().forward_shape(())
d.CorrCholeskyTransform().forward_shape((4,))
d.CorrCholeskyTransform().inverse_shape((4,))
d.CorrCholeskyTransform().inverse_shape((4, 3))
d.CatTransform(["exp"])
d.CatTransform([d.ExpTransform()], lengths=[1, 2])
d.CatTransform([d.ExpTransform()], dim=2)(t([1.0]))
d.CatTransform([d.ExpTransform()])(t([1.0, 2.0]))
d.CatTransform([d.ExpTransform()]).inv(t([1.0, 2.0]))
d.CatTransform([d.ExpTransform()]).log_abs_det_jacobian(t([1.0, 2.0]), t([1.0, 2.0]))
d.StackTransform(["exp"])
d.StackTransform([d.ExpTransform()])(t([1.0, 2.0]))
d.StackTransform([d.ExpTransform()], 4)(t([1.0, 2.0]))
d.AbsTransform().log_abs_det_jacobian(t(1.0), t(1.0))
d.Transform()(t(1.0))
d.Transform().inv(t(1.0))
d.Transform().sign
d.AffineTransform(0, 1).inv.inv.event_dim
d.ReshapeTransform((2, 3), (6,)).event_dim
"""


@pytest.mark.parametrize("text", lines(MISTAKES))
def test_mistakes_are_pytorchs(text):
    ours, theirs = both(lambda module: made(module, text))
    if isinstance(theirs, NotImplementedError):
        assert isinstance(ours, NotImplementedError)
    else:
        assert_same_outcome(ours, theirs, 0, text)


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_a_cache_gives_the_very_input_back(module):
    d = module.distributions
    transform = d.ComposeTransform([d.AffineTransform(0.0, 5.0), d.TanhTransform()], cache_size=1)
    x = module.tensor([3.0, -4.0], requires_grad=True)
    y = transform(x)
    assert y.abs().tolist() == [1, 1]
    assert transform.inv(y) is x
    assert transform(x) is y
    bare = d.ComposeTransform([d.AffineTransform(0.0, 5.0), d.TanhTransform()])
    assert module.isinf(bare.inv(bare(x))).all()
    assert d.TanhTransform().with_cache() == d.TanhTransform()
    assert d.TanhTransform().with_cache(1)._cache_size == 1


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
@pytest.mark.parametrize(
    "text", ["d.AffineTransform(1.0, 2.0)", "d.PowerTransform(2.0)", "d.ReshapeTransform((1,), (1, 1))"]
)
def test_transforms_with_parameters_keep_them_with_a_cache(module, text):
    transform = made(module, text)
    cached = transform.with_cache(1)
    assert type(cached) is type(transform) and cached._cache_size == 1 and transform.with_cache(0) is transform
    x = module.tensor([[2.0]])
    assert cached(x).tolist() == transform(x).tolist()


def test_a_class_of_ones_own_needs_a_with_cache():
    for module in (backlight, torch):

        class Shift(module.distributions.Transform):
            def __init__(self, by, cache_size=0):
                super().__init__(cache_size)
                self.by = by

        with pytest.raises(NotImplementedError, match="with_cache is not implemented"):
            Shift(1).with_cache(1)


def test_transforms_can_be_pickled_without_their_inverse():
    transform = backlight.distributions.AffineTransform(1.0, 2.0)
    assert transform.inv.inv is transform
    again = pickle.loads(pickle.dumps(transform))
    assert again == transform and again._inv is None


@pytest.mark.parametrize("module", [backlight, torch], ids=["backlight", "torch"])
def test_densities_of_a_transformed_distribution_integrate_to_1(module):
    d = module.distributions
    base = d.Normal(0.3, 0.8)
    one = d.TransformedDistribution(base, [d.AffineTransform(0.5, -1.5), d.SigmoidTransform()])
    grid = module.linspace(0, 1, 20001, dtype=module.float64)[1:-1]
    assert (one.log_prob(grid).exp().sum() / 20000).item() == pytest.approx(1, abs=1e-5)
    assert one.cdf(one.icdf(module.tensor([0.1, 0.5, 0.9]))).tolist() == pytest.approx([0.1, 0.5, 0.9], abs=1e-5)
