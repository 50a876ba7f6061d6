"""From one seed come PyTorch's samples, for every family; gradients of reparametrised samples are PyTorch's too."""

import numpy as np
import pytest
import torch
from families import FAMILIES, assert_same_outcome, outcome

import backlight

ROUNDING = {"float32": 6e-6, "float64": 1e-13}
EACH = [(family, dtype) for family in FAMILIES for dtype in ("float32", "float64")]
pytestmark = [
    pytest.mark.filterwarnings("ignore:Singular sample detected"),
    pytest.mark.filterwarnings("ignore:Low df values detected"),
]
by_family = pytest.mark.parametrize(("family", "dtype"), EACH, ids=lambda value: getattr(value, "name", value))


def drawn(module, family, dtype: str, shape: tuple, expanded: bool = False):
    """Return samples after a seed, and the number that follows them."""
    distribution, _ = family.of(module, dtype)
    if expanded:
        distribution = distribution.expand((4, *distribution.batch_shape))
    module.manual_seed(5)
    return distribution.sample(shape), module.rand(1)


@pytest.mark.parametrize("expanded", [False, True], ids=["", "expanded"])
@by_family
def test_samples_for_a_seed_are_pytorchs(family, dtype, expanded):
    for shape in ((), (3,), (2, 3)):
        ours, following = drawn(backlight, family, dtype, shape, expanded)
        theirs, expected = drawn(torch, family, dtype, shape, expanded)
        rounding = 0 if family.exact else max(ROUNDING[dtype], family.tolerance / 20 * (dtype == "float32"))
        assert_same_outcome(ours, theirs, rounding, f"samples of shape {shape}")
        assert following.tolist() == expected.tolist()
        assert not ours.requires_grad


def gradients(module, family, dtype: str):
    """Return a reparametrised sample and the gradients of the parameters for fixed weights of it."""
    distribution, parameters = family.of(module, dtype, requires_grad=True)
    module.manual_seed(7)
    sample = distribution.rsample((3,))
    weights = np.random.default_rng(1).normal(size=tuple(sample.shape))
    total = (sample * module.tensor(weights, dtype=sample.dtype)).sum()
    return sample, *module.autograd.grad(total, parameters)


@pytest.mark.parametrize(
    ("family", "dtype"),
    # the backward of PyTorch's Wishart raises: it writes to a mask that it saved
    [(family, dtype) for family, dtype in EACH if family.name != "Wishart"],
    ids=lambda value: getattr(value, "name", value),
)
def test_gradients_of_samples_are_pytorchs(family, dtype):
    ours, theirs = (outcome(lambda module=module: gradients(module, family, dtype)) for module in (backlight, torch))
    tolerance = 10 * family.tolerance if dtype == "float32" else 1e-9
    assert_same_outcome(ours, theirs, tolerance, "the sample and its gradients")


def test_a_wishart_sample_has_the_gradient_of_the_matrices_that_replaced_singular_ones():
    torch_like = next(family for family in FAMILIES if family.name == "Wishart")
    distribution, (df, covariance) = torch_like.of(backlight, "float64", requires_grad=True)
    backlight.manual_seed(0)
    sample = distribution.rsample()
    assert sample.requires_grad
    grads = backlight.autograd.grad(sample.sum(), [df, covariance])
    assert all(backlight.isfinite(one).all() for one in grads)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_numbers_are_pytorchs_to_the_last_bit(dtype):
    shapes = np.exp(np.random.default_rng(0).normal(0, 2, 500))
    shapes[:6] = [0, 1, 8, 1e-4, 1e4, 1 / 3]
    found = []
    for module in (backlight, torch):
        module.manual_seed(3)
        module.randn(3)  # leaves one of a pair
        numbers = module._standard_gamma(module.tensor(shapes, dtype=getattr(module, dtype)))
        found.append((numbers.double().tolist(), module.randn(3).tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -1.0, -0.5, 0.0])
def test_gamma_numbers_of_invalid_shapes_end_as_in_pytorch(special):
    found = []
    for module in (backlight, torch):
        module.manual_seed(3)
        found.append((module._standard_gamma(module.tensor([special])).tolist(), module.rand(1).tolist()))
    assert found[0] == found[1]


def test_shares_are_those_of_pytorch_in_float32():
    for columns in (2, 3, 7, 50):
        concentrations = np.exp(np.random.default_rng(0).normal(0, 1, (20, columns)))
        found = []
        for module in (backlight, torch):
            module.manual_seed(3)
            tensor = module.tensor(concentrations, dtype=module.float32)
            found.append(module._sample_dirichlet(tensor).tolist())
        assert found[0] == found[1]


ALPHAS = np.concatenate([np.exp(np.linspace(-4, 7, 60)), [8.0, 8.001, 6.0, 6.001]])


def test_gradient_of_gamma_numbers_is_pytorchs_in_every_region():
    alpha, scale = np.meshgrid(ALPHAS, np.linspace(0.05, 2.5, 60))
    ours, theirs = (
        module._standard_gamma_grad(module.tensor(alpha), module.tensor(alpha * scale)) for module in (backlight, torch)
    )
    assert_same_outcome(ours, theirs, 1e-9)


def test_gradient_of_beta_numbers_is_pytorchs_in_every_region():
    rng = np.random.default_rng(0)
    alpha, beta = (np.exp(rng.normal(0.5, 2, 20000)) for _ in range(2))
    mean = alpha / (alpha + beta)
    x = np.where(rng.random(20000) < 0.5, rng.uniform(1e-4, 1 - 1e-4, 20000), mean * rng.uniform(0.95, 1.0, 20000))
    arguments = [x, alpha, alpha + beta]
    ours, theirs = (module._dirichlet_grad(*[module.tensor(one) for one in arguments]) for module in (backlight, torch))
    assert_same_outcome(ours, theirs, 1e-8)


def test_gamma_numbers_have_no_second_derivative_as_in_pytorch():
    for module in (backlight, torch):
        alpha = module.tensor([2.0, 3.0], requires_grad=True)
        (slope,) = module.autograd.grad(module._standard_gamma(alpha).sum(), alpha, create_graph=True)
        with pytest.raises(NotImplementedError, match="the derivative for '_standard_gamma_grad' is not implemented"):
            slope.sum().backward()


def test_dirichlet_numbers_are_differentiable_once():
    for module in (backlight, torch):
        concentration = module.tensor([2.0, 3.0], requires_grad=True)
        sample = module.distributions.Dirichlet(concentration).rsample()
        assert type(sample.grad_fn).__name__ == "_DirichletBackward"
        (slope,) = module.autograd.grad((sample * sample).sum(), concentration, create_graph=True)
        with pytest.raises(RuntimeError, match="trying to differentiate twice"):
            slope.sum().backward()


def test_shares_drawn_by_the_inner_function_have_no_derivative():
    for module in (backlight, torch):
        shares = module._sample_dirichlet(module.tensor([2.0, 3.0], requires_grad=True))
        with pytest.raises(RuntimeError, match="derivative for aten::_sample_dirichlet is not implemented"):
            shares[0].backward()


@pytest.mark.parametrize("dtype", ["int64", "float16", "bfloat16"])
@pytest.mark.parametrize("function", ["_standard_gamma", "_sample_dirichlet"])
def test_dtypes_without_a_sampler_are_refused(function, dtype):
    messages = []
    for module in (backlight, torch):
        with pytest.raises(NotImplementedError) as raised:
            getattr(module, function)(module.tensor([1, 2], dtype=getattr(module, dtype)))
        messages.append(str(raised.value))
    assert messages[0].startswith(messages[1])


def test_sample_n_warns_that_sample_does_it():
    for module in (backlight, torch):
        with pytest.warns(FutureWarning, match="`sample_n\\(n\\)` will be deprecated"):
            assert module.distributions.Normal(module.zeros(2), 1.0).sample_n(3).shape == (3, 2)
