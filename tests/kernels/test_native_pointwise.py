"""Native functions of one number: they agree with their references, and in float64 with the truth, at every level."""

import math
import zlib

import numpy as np
import pytest
import torch
from for_each import together
from test_native import KINDS

import backlight
from backlight.kernels.elementwise import gated_activations, unary
from backlight.kernels.native import compiled
from backlight.kernels.special import erf, gamma

NAN, INF = math.nan, math.inf
SIZES = [(0,), (1,), (3,), (2, 8), (33,), (5, 67), (1025,), (70, 1024), (300, 333)]
CURVES = {
    unary.exp: (),
    unary.expm1: (),
    unary.log: (),
    unary.log1p: (),
    unary.tanh: (),
    unary.sigmoid: (),
    unary.logsigmoid: (),
    unary.softplus: (1.5, 20.0),
    unary.relu: (),
    unary.leaky_relu: (0.1,),
    unary.hardtanh: (-1.0, 2),
    unary.hardsigmoid: (),
    unary.hardswish: (),
    unary.softshrink: (0.5,),
    unary.hardshrink: (0.5,),
    unary.elu: (1.3, 1.1, 0.7),
    erf.erf: (),
    erf.erfc: (),
    erf.erfinv: (),
    gamma.lgamma: (),
    gamma.digamma: (),
    gated_activations.gelu: (),
    gated_activations.gelu_tanh: (),
    gated_activations.silu: (),
}
SLOPES = {
    unary.tanh_gradient: (),
    unary.sigmoid_gradient: (),
    unary.logsigmoid_gradient: (),
    unary.softplus_gradient: (1.5, 20.0),
    unary.relu_gradient: (),
    unary.leaky_relu_gradient: (0.1,),
    unary.hardtanh_gradient: (-1.0, 2),
    unary.hardsigmoid_gradient: (),
    unary.hardswish_gradient: (),
    unary.shrink_gradient: (0.5,),
    unary.elu_gradient: (1.3, 1.1, 0.7),
    erf.erf_gradient: (),
    gated_activations.gelu_gradient: (),
    gated_activations.gelu_tanh_gradient: (),
    gated_activations.silu_gradient: (),
}
# The least magnitude whose last place counts (gradients cross 0, where terms cancel), and how many units may be wrong
ACCURACY = {"gelu": (1e-30, 6), "gelu_gradient": (0.1, 8), "gelu_tanh": (1e-3, 24), "softplus": (1e-30, 12)}
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1e-30, -1e-30, 1e-310, -1e-310, 1.0, -1.0, 20.0, -20.0, 90.0, -90.0, -104.0, 750.0]
EDGES += [-750.0, 1e5, -1e5, 1e30, -1e30, 0.5, -0.5, 0.75, 1e-8, -1e-8]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def named(function):
    return getattr(function, "__name__", function)


def numbers(function, shape, kind, scale=3.0):
    x = np.random.default_rng(zlib.crc32(str(shape).encode())).normal(size=shape, scale=scale).astype(kind)
    if named(function) in ("log", "log1p", "lgamma", "digamma"):
        return np.abs(x)
    if named(function) == "erfinv":
        return kind(0.99) * np.sin(x)
    return np.tanh(x) if named(function) in ("tanh_gradient", "sigmoid_gradient") else x


def close(found, expected, kind, ulps, scale=None):
    """Compare to so many units in the last place, of the expected value or of `scale`."""
    assert found.dtype == expected.dtype and found.shape == expected.shape and type(found) is type(expected)
    unit = np.finfo(kind).eps * (np.abs(expected) if scale is None else np.maximum(np.abs(expected), scale))
    fine = np.abs(found - expected) <= ulps * unit + 4 * np.finfo(kind).smallest_subnormal
    fine |= (found == expected) | (np.isnan(found) & np.isnan(expected))
    assert fine.all(), (found[~fine][:5], expected[~fine][:5])


@together(kind=KINDS, shape=SIZES)
@pytest.mark.parametrize("function", CURVES, ids=named)
def test_functions_agree_with_their_references(level, function, shape, kind):
    x = numbers(function, shape, kind)
    near_1 = named(function).startswith(("gelu", "lgamma", "digamma"))  # the reference is right to a unit of 1
    scale = 1 if near_1 else 0.1
    close(function(x, *CURVES[function]), function.__wrapped__(x, *CURVES[function]), kind, 16, scale)


@together(kind=KINDS, shape=SIZES)
@pytest.mark.parametrize("function", SLOPES, ids=named)
def test_gradients_agree_with_their_references(level, function, shape, kind):
    x, grad = numbers(function, shape, kind), numbers(None, shape, kind, 1.0)[::-1].copy()
    found, expected = function(grad, x, *SLOPES[function]), function.__wrapped__(grad, x, *SLOPES[function])
    close(found, expected, kind, 128 if named(function) == "gelu_tanh_gradient" else 16, scale=np.abs(grad))


@together(kind=KINDS)
@pytest.mark.parametrize("function", CURVES, ids=named)
def test_functions_treat_edges_as_their_references_do(level, function, kind):
    x = np.array(EDGES).astype(kind)
    expected = function.__wrapped__(x, *CURVES[function])
    found = function(x, *CURVES[function])
    close(found, expected, kind, 40, scale=np.finfo(kind).eps)
    if named(function) not in ("relu", "leaky_relu", "elu"):  # the larger of 0 and −0 is either
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected) & (expected == 0)].all()


@together(kind=KINDS)
@pytest.mark.parametrize("function", SLOPES, ids=named)
def test_gradients_treat_edges_as_their_references_do(level, function, kind):
    x = np.array(EDGES).astype(kind)
    for grad in (np.full_like(x, -1.5), x[::-1].copy()):
        found, expected = function(grad, x, *SLOPES[function]), function.__wrapped__(grad, x, *SLOPES[function])
        close(found, expected, kind, 40, scale=np.finfo(kind).eps)


@pytest.mark.parametrize("function", [*CURVES, *SLOPES], ids=named)
def test_float32_is_right_to_a_few_units(level, function):
    options = CURVES.get(function, SLOPES.get(function))
    x = np.concatenate([numbers(function, (4000,), np.float32, scale) for scale in (3.0, 0.1, 1e-4)])
    arguments = [x] if function in CURVES else [np.ones_like(x), x]
    truth = function.__wrapped__(*(one.astype(np.float64) for one in arguments), *options)
    if named(function) == "gelu":
        truth = 0.5 * x * erf.erfc(x.astype(np.float64) * -gated_activations.SQRT_HALF)
    least, limit = ACCURACY.get(named(function), (1e-30, 4) if function in CURVES else (0.1, 4))
    unit = np.maximum(np.abs(truth), least) * np.finfo(np.float32).eps
    assert (np.abs(function(*arguments, *options) - truth) / unit).max() < limit


@pytest.mark.parametrize("function", [unary.exp, unary.tanh, gated_activations.gelu, unary.relu], ids=named)
def test_a_number_gives_what_numpy_gives(level, function):
    for x in (np.float32(0.7), np.array(0.7, np.float32), np.float64(0.7), np.array(0.7)):
        found, expected = function(x), function.__wrapped__(x)
        assert type(found) is type(expected)
        assert abs(found - expected) <= 4 * np.finfo(found.dtype).eps
    assert type(unary.tanh_gradient(np.float32(2), np.float32(0.5))) is np.float32
    assert unary.tanh_gradient(np.float32(2), np.float32(0.5)) == np.float32(1.5)


def test_a_stretched_gradient_is_taken_as_it_is(level):
    x = numbers(None, (700, 9), np.float32)
    stretched = np.broadcast_to(np.float32(1.5), x.shape)
    for function, options in SLOPES.items():
        expected = function(np.full_like(x, 1.5), x, *options)
        assert np.array_equal(function(stretched, x, *options), expected), named(function)


@pytest.mark.parametrize(
    "function", [unary.tanh, unary.softplus, gated_activations.gelu, gated_activations.silu, erf.erf], ids=named
)
def test_strides_and_halves_go_to_the_reference(level, function):
    x, options = numbers(None, (40, 30), np.float32), CURVES[function]
    close(function(x[::2, ::-1], *options), function(x[::2, ::-1].copy(), *options), np.float32, 16, scale=1)
    half = function(x.astype(np.float16), *options)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, function(x.astype(np.float16).astype(np.float32), *options), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("function", CURVES, ids=named)
def test_results_do_not_depend_on_threads(level, function):
    x, before = numbers(function, (300, 1111), np.float32), compiled.threads()
    found = []
    for count in (1, 2, 3):
        compiled.set_threads(count)
        found.append(function(x, *CURVES[function]))
    compiled.set_threads(before)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


SECOND = {
    "tanh": lambda t, x: x.tanh(),
    "sigmoid": lambda t, x: x.sigmoid(),
    "relu": lambda t, x: x.relu(),
    "leaky_relu": lambda t, x: t.nn.functional.leaky_relu(x, 0.2),
    "elu": lambda t, x: t.nn.functional.elu(x, 1.3),
    "selu": lambda t, x: t.nn.functional.selu(x),
    "softplus": lambda t, x: t.nn.functional.softplus(x, 2.0, 2.9),
    "logsigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "gelu_tanh": lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    "silu": lambda t, x: t.nn.functional.silu(x),
    "erf": lambda t, x: x.erf(),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_equal_pytorch(name):
    results = []
    for library in (backlight, torch):
        x = library.linspace(-3, 3, 41, dtype=library.float64).requires_grad_()
        weight = library.linspace(-1, 2, 41, dtype=library.float64).requires_grad_()
        (first,) = library.autograd.grad((SECOND[name](library, x) * weight).sum(), x, create_graph=True)
        second = library.autograd.grad((first * first * x).sum(), (x, weight))
        results.append((type(first.grad_fn).__name__, *(one.detach().numpy() for one in (first, *second))))
    ours, theirs = results
    assert ours[0] == theirs[0]
    for found, expected in zip(ours[1:], theirs[1:]):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
