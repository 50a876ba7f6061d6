"""Special functions without derivatives, by what they satisfy: PyTorch's values are off by 1e-8 here and there."""

import math

import numpy as np
import pytest
import torch

import backlight
from backlight import special

X = np.concatenate([np.linspace(0.01, 24.99, 150), np.linspace(25.01, 300, 100)])


def of(name, *arrays):
    return getattr(special, name)(*[backlight.from_numpy(np.array(array, float)) for array in arrays]).numpy()


def test_bessel_functions_have_their_wronskian():
    found = of("bessel_j1", X) * of("bessel_y0", X) - of("bessel_j0", X) * of("bessel_y1", X)
    np.testing.assert_allclose(found, 2 / (math.pi * X), rtol=2e-13)


def test_modified_bessel_functions_have_their_wronskian():
    x = X[X < 100]
    scaled = of("i0e", x) * of("scaled_modified_bessel_k1", x) + of("i1e", x) * of("scaled_modified_bessel_k0", x)
    np.testing.assert_allclose(scaled, 1 / x, rtol=1e-14)
    np.testing.assert_allclose(of("modified_bessel_k1", x), np.exp(-x) * of("scaled_modified_bessel_k1", x), rtol=1e-13)


def test_airy_solves_its_equation():
    x, step = np.linspace(-30, 5, 300), 1e-3
    left, middle, right = (of("airy_ai", x + shift) for shift in (-step, 0, step))
    np.testing.assert_allclose((left - 2 * middle + right) / step**2, x * middle, atol=4e-5)


@pytest.mark.parametrize("a", [0.01, 0.7, 5.0, 12.9, 13.1, 150.0, 199.9, 200.1, 3e4, 1e8])
def test_incomplete_gamma_steps_from_a_to_a_plus_1(a):
    x = np.maximum(a + math.sqrt(a) * np.linspace(-0.9, 5, 60), a / 3)
    lower, upper = of("gammainc", np.full(60, a), x), of("gammaincc", np.full(60, a), x)
    np.testing.assert_allclose(lower + upper, 1, rtol=1e-14)
    step = np.exp(a * np.log(x / a) + a - x - 0.5 * math.log(a * 2 * math.pi)) * _stirling(a)
    np.testing.assert_allclose(lower - of("gammainc", np.full(60, a + 1), x), step, rtol=1e-6, atol=1e-13)


def _stirling(a: float) -> float:
    """Return √(2π · a) · (a / e)^a / Γ(a + 1)."""
    return (
        math.exp(0.5 * math.log(2 * math.pi * a) + a * math.log(a) - a - math.lgamma(a + 1))
        if a < 1e4
        else 1 - 1 / (12 * a)
    )


BORDERS = [0.0, -1.0, 1.0, 2.5, math.inf, -math.inf]


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_borders_are_pytorchs(name):
    first, second = (np.array(one) for one in zip(*[(a, b) for a in BORDERS for b in BORDERS]))
    if name == "zeta":  # of infinite arguments PyTorch's is often NaN where the sum is 0
        finite = np.isfinite(first) & np.isfinite(second)
        first, second = first[finite], second[finite]
    theirs = getattr(torch.special, name)(torch.tensor(first), torch.tensor(second)).numpy()
    np.testing.assert_allclose(of(name, first, second), theirs, rtol=1e-12)


WAVES = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1"]
WAVES += [
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
]


@pytest.mark.parametrize("name", WAVES)
def test_what_has_no_derivative_makes_no_graph(name):
    borders = [0.0, -1.0, math.inf, -math.inf, math.nan]
    np.testing.assert_allclose(of(name, borders), getattr(torch.special, name)(torch.tensor(borders).double()).numpy())
    for module in (backlight, torch):
        assert not getattr(module.special, name)(module.ones(2, requires_grad=True)).requires_grad
        assert getattr(module.special, name)(module.tensor([1, 2])).dtype is module.float32
        for kind in (module.float16, module.bfloat16):
            with pytest.raises(NotImplementedError, match=r"not implemented for '(Half|BFloat16)'"):
                getattr(module.special, name)(module.ones(2, dtype=kind))


@pytest.mark.parametrize(
    ("name", "message"),
    [("gammainc", "'igamma: input'"), ("gammaincc", "'igammac: input'"), ("zeta", "'zeta'")],
)
def test_first_arguments_have_no_derivative(name, message):
    for module in (backlight, torch):
        a = module.tensor([2.0], requires_grad=True)
        out = getattr(module.special, name)(a, module.tensor([3.0]))
        with pytest.raises(NotImplementedError, match=f"the derivative for {message} is not implemented."):
            out.backward()
        assert type(out.grad_fn).__name__ == {"zeta": "SpecialZetaBackward0"}.get(name, f"I{message[2:-8]}Backward0")


def test_igamma_takes_no_integers():
    for module in (backlight, torch):
        for name in ("igamma", "igammac"):
            with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for 'Long'"):
                getattr(module, name)(module.tensor([2]), module.tensor([2]))


def test_igamma_writes_in_place():
    for module in (backlight, torch):
        for name in ("igamma_", "igammac_"):
            x = module.tensor([2.0])
            assert getattr(x, name)(module.tensor([3.0])) is x
            assert x.item() == pytest.approx(0.800852 if name == "igamma_" else 0.199148, abs=1e-5)
