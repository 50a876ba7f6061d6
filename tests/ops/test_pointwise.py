"""Elementwise ops beside PyTorch: node names, kinks, operators, in-place forms, dtypes, messages, special values."""

import math
import operator
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import backlight
from backlight.kernels.elementwise import gated_activations, masked_choice
from backlight.kernels.special import erf, gamma, modified_bessel

NAN, INF = float("nan"), float("inf")
BOTH = (backlight, torch)


def evaluated(source, module, **tensors):
    names = {name: module.tensor(values, requires_grad=True) for name, values in tensors.items()}
    return eval(source, {"t": module, "F": module.nn.functional, **names}), names


# --- the graph's face ------------------------------------------------------------------------------------------------

NAMED = """
x + y | x - y | 1 - x | t.rsub(x, y) | x * y | x / y | 1 / x | x // y | x % y | x % 2 | t.fmod(x, y) | t.fmod(x, 2) | -x
t.div(x, y, rounding_mode='trunc') | t.div(x, y, rounding_mode='floor') | t.floor_divide(x, y) | x**2 | x**y | 2**x
t.float_power(x, 2) | t.float_power(x, y) | x.reciprocal() | x.square() | x.sqrt() | x.rsqrt() | t.addcmul(x, y, z)
t.addcdiv(x, y, z) | t.lerp(x, y, z) | t.lerp(x, y, 0.5) | t.hypot(x, y) | t.atan2(x, y) | t.logaddexp(x, y)
t.logaddexp2(x, y) | t.xlogy(x, y) | t.xlogy(x, 2.0) | t.xlogy(2.0, x) | t.special.xlog1py(x, y) | t.ldexp(x, y)
t.special.xlog1py(2.0, y) | t.special.xlog1py(x, 2.0) | t.copysign(x, y) | t.copysign(x, 2.0) | t.nan_to_num(x)
x.exp() | x.exp2() | x.expm1() | x.log() | x.log2() | x.log10() | x.log1p() | x.sin() | x.cos() | x.tan()
x.asin() | x.acos() | x.atan() | x.sinh() | x.cosh() | x.tanh() | (x + 1).acosh()
x.asinh() | x.atanh() | x.sinc() | x.erf() | x.erfc()
x.erfinv() | x.lgamma() | x.digamma() | t.polygamma(1, x) | x.i0() | t.special.i0e(x) | t.special.i1(x)
t.special.i1e(x) | t.special.log_ndtr(x) | t.special.ndtri(x) | t.special.erfcx(x) | t.special.entr(x) | x.sigmoid()
x.logit() | x.abs() | x.sign() | x.sgn() | x.floor() | x.ceil() | x.round() | x.round(decimals=1) | x.trunc() | x.frac()
x.deg2rad() | x.rad2deg() | t.heaviside(x, y) | F.relu(x) | F.relu6(x) | F.gelu(x) | F.silu(x) | F.softplus(x)
F.leaky_relu(x) | F.elu(x) | F.selu(x) | F.celu(x) | F.hardtanh(x) | F.hardswish(x) | F.hardsigmoid(x) | F.mish(x)
F.logsigmoid(x) | F.softsign(x) | F.tanhshrink(x) | F.softshrink(x) | F.hardshrink(x) | F.threshold(x, 0.1, 0.2)
F.glu(x) | F.prelu(x, y[:1]) | t.clamp(x, 0.1, 0.2) | t.clamp(x, y, z) | t.clamp(x, min=y) | x.clamp_min(0.1)
x.clamp_max(0.1) | x.clamp_min(y) | x.clamp_max(y) | t.where(x > 0, x, y) | t.where(x > 0, x, 1.0) | t.maximum(x, y)
t.minimum(x, y) | t.fmax(x, y) | t.fmin(x, y) | x.clone().add_(y) | x.clone().mul_(2) | x.clone().clamp_(0, 1)
x.clone().pow_(2) | t.mvlgamma(x + 2, 2) | t.nextafter(x, y) | t.frexp(x)[0] | t.angle(x)
"""


def chain(node) -> list:
    """Return the names of a node and of those it leads to, first edges first, with their numbers of edges."""
    found = []
    while node is not None and "Accumulate" not in type(node).__name__:
        found.append((type(node).__name__, len(node.next_functions)))
        node = next((after for after, _ in node.next_functions if after is not None), None)
    return found


@pytest.mark.parametrize("source", [one.strip() for one in NAMED.replace("\n", "|").split("|") if one.strip()])
def test_nodes_have_pytorchs_names_and_edges(source):
    ours, theirs = (evaluated(source, module, x=[0.5, 0.6], y=[0.3, 0.7], z=[0.2, 0.9])[0].grad_fn for module in BOTH)
    assert chain(ours) == chain(theirs)


# --- kinks, ties and values beyond the numbers -----------------------------------------------------------------------

POINTS = [-100.0, -6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 100.0, NAN]
LINES = """
t.abs(x) | t.sign(x) | t.relu(x) | F.relu6(x) | F.hardtanh(x) | F.hardsigmoid(x) | F.hardswish(x) | F.leaky_relu(x)
F.elu(x) | F.celu(x, 2.0) | F.selu(x) | F.softshrink(x) | F.hardshrink(x) | F.threshold(x, 0.5, -1.0) | F.logsigmoid(x)
F.softplus(x) | F.silu(x) | F.mish(x) | F.gelu(x) | F.gelu(x, approximate='tanh') | F.tanhshrink(x) | F.softsign(x)
t.clamp(x, 0, 1) | t.clamp(x, 2, 1) | t.clamp_min(x, 0) | t.clamp_max(x, 0) | t.nan_to_num(x) | t.sigmoid(x) | x**0
x**1 | x**2 | t.sinc(x) | t.where(x > 0, x, 0.0) | t.square(x) | t.frac(x) | t.floor(x) | t.logit(x) | t.logit(x, 0.3)
F.prelu(x, t.tensor([0.25])) | t.sqrt(t.relu(x)) | t.clamp(x, min=0).sqrt() | t.where(x > 0, x, 0).log()
"""


@pytest.mark.parametrize("source", [one.strip() for one in LINES.replace("\n", "|").split("|") if one.strip()])
def test_values_and_slopes_at_kinks_are_pytorchs(source):
    values, slopes = [], []
    for module in BOTH:
        result, names = evaluated(source, module, x=POINTS)
        values.append(result.detach().numpy())
        slopes.append(module.autograd.grad(result.sum(), names["x"])[0].numpy())
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6, err_msg="values")
    np.testing.assert_allclose(*slopes, rtol=1e-5, atol=1e-6, err_msg="slopes")


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "hypot", "atan2", "copysign", "xlogy", "pow"])
def test_ties_and_nan_of_pairs_share_the_gradient_as_in_pytorch(name):
    results = []
    for module in BOTH:
        result, names = evaluated(
            f"t.{name}(x, y)", module, x=[1.0, 2.0, 3.0, NAN, 1.0, NAN, 0.5], y=[1.0, 3.0, 2.0, 1.0, NAN, NAN, 0.0]
        )
        results.append([grad.numpy() for grad in module.autograd.grad(result.sum(), list(names.values()))])
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_clamp_between_tensors_gives_the_gradient_to_what_was_taken():
    results = []
    for module in BOTH:
        x = [-1.0, 0.0, 0.5, 1.0, 2.0, NAN, 0.5]
        result, names = evaluated(
            "t.clamp(x, y, z)", module, x=x, y=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0], z=[1.0] * len(x)
        )
        results.append([grad.numpy() for grad in module.autograd.grad(result.sum(), list(names.values()))])
    np.testing.assert_array_equal(*results)


def test_a_power_of_zero_has_pytorchs_gradients():
    results = []
    for module in BOTH:
        result, names = evaluated("x**y", module, x=[0.0, 0.0, 0.0, -2.0, 2.0], y=[0.0, 1.0, -1.0, 2.0, 0.0])
        results.append([grad.numpy() for grad in module.autograd.grad(result.sum(), list(names.values()))])
    np.testing.assert_allclose(*results)


def test_sinc_is_smooth_at_zero():
    x = backlight.tensor([0.0, 1e-4], dtype=backlight.float64, requires_grad=True)
    (slope,) = backlight.autograd.grad(backlight.sinc(x).sum(), x, create_graph=True)
    (bend,) = backlight.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(bend.numpy(), -(math.pi**2) / 3, rtol=1e-6)


# --- operators -------------------------------------------------------------------------------------------------------

OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", ["float32", "int64", "bfloat16"])
def test_numbers_stand_on_either_side(name, kind):
    apply = getattr(operator, name)
    results = []
    for module in BOTH:
        x = module.tensor([3, 5, 2]).to(getattr(module, kind))
        results.append([apply(x, 2), apply(2, x), apply(x, 2.5), apply(2.5, x)])
    for ours, theirs in zip(*results):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(ours.double().numpy(), theirs.double().numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", [*OPERATORS, "and_", "or_", "xor", "lshift", "rshift", "lt", "ge"])
@pytest.mark.parametrize("foreign", [{1}, None, [1]])
def test_operators_refuse_foreign_operands_as_python_does(name, foreign):
    apply = getattr(operator, name)
    for arrange in (lambda x: (x, foreign), lambda x: (foreign, x)):
        messages = []
        for module in BOTH:
            with pytest.raises(TypeError) as caught:
                apply(*arrange(module.tensor([1, 2])))
            messages.append(str(caught.value))
        if "list" not in messages[1] and "invalid combination" not in messages[1]:
            assert messages[0] == messages[1]


def test_comparison_with_something_foreign_is_no_tensor():
    x = backlight.tensor(1)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False


def test_a_tensor_is_hashed_by_identity_in_c():
    assert backlight.Tensor.__hash__ is object.__hash__
    assert hash(backlight.tensor([1.0])) is not None


def test_integers_too_large_for_a_dtype_wrap_round():
    ours, theirs = (
        (module.tensor([1, 2], dtype=module.uint8) + 300).add(module.tensor([5], dtype=module.uint8), alpha=-3)
        for module in BOTH
    )
    assert ours.tolist() == theirs.tolist()


def test_whole_powers_below_zero_are_zero_or_one():
    ours, theirs = (module.tensor([1, -1, 2, 3, -1]) ** module.tensor([-1, -3, -1, 2, -2]) for module in BOTH)
    assert ours.tolist() == theirs.tolist()


INPLACE = """
abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not ceil clamp clamp_max
clamp_min copysign cos cosh deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide
fmod frac ge gt hypot i0 ldexp le lerp lgamma log log10 log1p log2 logical_and logical_not logit lt mul multiply
mvlgamma nan_to_num ne neg negative nextafter not_equal pow rad2deg reciprocal relu remainder round rsqrt sgn
sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh true_divide trunc xlogy
"""


@pytest.mark.parametrize("name", INPLACE.split())
def test_in_place_forms_write_what_the_function_returns(name):
    arguments = {"clamp": (0.2, 0.6), "addcmul": 2, "addcdiv": 2, "lerp": 2, "mvlgamma": (1,)}
    signature = arguments.get(name, ())
    pairs = (
        "atan2 copysign div eq floor_divide fmod ge gt hypot ldexp le logical_and lt mul multiply ne nextafter pow add"
    )
    pairs += " remainder sub subtract true_divide xlogy not_equal float_power clamp_min clamp_max bitwise_and"
    count = signature if isinstance(signature, int) else 1 if name in pairs.split() else 0
    results = []
    for module in BOTH:
        kind = module.int64 if "bitwise" in name else module.float64
        x = module.tensor([0.7, 0.4, 0.9] if kind is module.float64 else [5, 6, 7], dtype=kind) + (name == "acosh")
        operands = [x * (place + 2) / 3 if kind is module.float64 else x - 1 for place in range(count)]
        expected = getattr(x, name)(*operands, *(signature if isinstance(signature, tuple) else ()))
        written = getattr(x, name + "_")(*operands, *(signature if isinstance(signature, tuple) else ()))
        assert written is x
        assert x._version == 1
        np.testing.assert_array_equal(x.numpy(), expected.to(kind).numpy())
        results.append(x.numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_an_in_place_sum_is_written_without_a_new_array():
    x, y = backlight.ones(3), backlight.ones(3)
    memory = x.numpy()
    x += y
    x *= 2.0
    x /= y
    x -= 1
    assert memory.tolist() == [3.0, 3.0, 3.0]
    assert x._version == 4


def test_an_in_place_sum_still_checks_shape_and_dtype():
    with pytest.raises(RuntimeError, match="output with shape"):
        backlight.ones(3).add_(backlight.ones(2, 3))
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        backlight.ones(3, dtype=backlight.int64).add_(1.5)
    x = backlight.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.add_(1.0)


# --- dtypes ----------------------------------------------------------------------------------------------------------

HALVES = ["x * 0.3", "t.add(x, x, alpha=0.3)", "x**1.5", "F.gelu(x)", "F.silu(x)", "F.elu(x)", "F.leaky_relu(x)",
          "t.where(x > 0, x, 0.3)", "t.sigmoid(x)", "t.lerp(x, x, 0.3)", "x.erf()", "t.exp2(x)", "t.rsqrt(x)",
          "t.clamp(x, 0.3, 0.7)", "t.deg2rad(x)", "F.softplus(x)", "F.hardswish(x)", "t.logit(x / 2, 0.1)",
          "t.maximum(x, 0.5 * x)", "t.addcmul(x, x, x, value=0.3)", "1 - x", "2 / x", "F.mish(x)"]  # fmt: skip


@pytest.mark.parametrize("source", HALVES)
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_gradients_of_half_precision_stay_in_half_precision(source, kind):
    seen = []
    x = backlight.tensor([0.5, 1.0], dtype=getattr(backlight, kind), requires_grad=True)
    y = eval(source, {"t": backlight, "F": backlight.nn.functional, "x": x})
    assert y.dtype is x.dtype
    x.register_hook(lambda grad: seen.append(grad.dtype))
    y.sum().backward()
    assert seen == [x.dtype]
    assert x.grad.dtype is x.dtype


REFUSED = """
b - b | i - b | 1 - b | b - 1 | -b | +b | ~f | f & f | i & f | f << 1 | f | True | i // 0 | i % 0 | t.fmod(i, 0) | i**-1
b**b | t.add(i, i, alpha=1.5) | t.div(f, 2, rounding_mode='x') | t.round(i, decimals=1) | t.frac(i) | t.heaviside(f, d)
t.clamp(f) | t.where(i, f, f) | t.isclose(f, d) | t.allclose(f, d) | t.isclose(f, f, rtol=-1) | t.lerp(i, i, 0.5)
t.nextafter(i, i) | t.rsub(b, 1) | t.addcdiv(i, i, i) | i.clone().add_(1.5) | i.clone().div_(2) | i.clone().mul_(f)
b.clone().add_(1) | t.add(f, 'a') | t.exp(2.0) | t.exp('a') | f * t.ones(3) | t.celu(i) | F.gelu(i) | F.silu(i)
t.prelu(f, t.tensor([0.1, 0.2, 0.3])) | F.gelu(f, approximate='x') | F.softplus(i) | F.leaky_relu(i) | F.hardswish(i)
F.glu(t.ones(3)) | F.glu(t.tensor(1.0)) | F.softshrink(f, -1) | F.mish(i) | F.elu(i) | F.logsigmoid(i) | t.isnan(2.0)
F.hardsigmoid(i) | F.hardshrink(i) | t.mvlgamma(f, 0) | t.polygamma(-1, f) | t.equal(f, 2) | F.celu(f, 0.0)
(g // 2).sum().backward() | t.heaviside(g, g).sum().backward()
""".replace("f | True", "f.bitwise_or(True)")


@pytest.mark.parametrize("source", [one.strip() for one in REFUSED.replace("\n", "|").split("|") if one.strip()])
def test_mistakes_give_pytorchs_message_first(source):
    messages, kinds = [], []
    for module in BOTH:
        f, i, b = module.tensor([1.5, -2.0]), module.tensor([3, -4]), module.tensor([True, False])
        names = {"t": module, "F": module.nn.functional, "f": f, "i": i, "b": b, "d": f.double()}
        names["g"] = module.tensor([1.5, -2.0], requires_grad=True)
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as caught:
            eval(source, names)
        messages.append(str(caught.value).split("\n")[0])
        kinds.append(caught.type)
    assert issubclass(kinds[1], next(one for one in kinds[0].__mro__ if one.__module__ == "builtins"))
    assert messages[0].startswith(messages[1].rstrip(". "))


# --- special functions -----------------------------------------------------------------------------------------------

POINTS_64 = np.concatenate([np.linspace(-7, 7, 1501), [1e-300, -1e-10, 0.46875, 4.0, 26.0, -26.0]])


@pytest.mark.parametrize(
    ("ours", "reference", "points"),
    [
        (erf.erf, math.erf, POINTS_64),
        (erf.erfc, math.erfc, POINTS_64),
        (gamma.lgamma, math.lgamma, np.concatenate([np.linspace(2.1, 40, 1501), np.logspace(2, 300, 60)])),
        (
            erf.erfinv,
            lambda x: float(torch.special.erfinv(torch.tensor(x, dtype=torch.float64))),
            np.linspace(-0.9999, 0.9999, 501),
        ),
        (gamma.digamma, lambda x: float(torch.digamma(torch.tensor(x, dtype=torch.float64))), np.linspace(2, 40, 501)),
        (
            modified_bessel.i0,
            lambda x: float(torch.i0(torch.tensor(x, dtype=torch.float64))),
            np.linspace(-40, 40, 501),
        ),
        (
            modified_bessel.i1e,
            lambda x: float(torch.special.i1e(torch.tensor(x, dtype=torch.float64))),
            np.linspace(-40, 40, 501),
        ),
    ],
    ids=["erf", "erfc", "lgamma", "erfinv", "digamma", "i0", "i1e"],
)
def test_special_functions_are_exact_to_the_last_digits(ours, reference, points):
    expected = np.array([reference(float(point)) for point in points])
    np.testing.assert_allclose(ours(points), expected, rtol=2e-14, atol=1e-300)


def test_lgamma_keeps_its_digits_beside_its_zeros():
    small = 1e-9
    np.testing.assert_allclose(
        gamma.lgamma(np.array([1 + small, 2 + small])),
        [-0.5772156649015329 * ((1 + small) - 1), 0.42278433509846713 * ((2 + small) - 2)],
        rtol=2e-9,
    )


def test_erfc_undoes_its_inverse_far_in_the_tail():
    p = np.logspace(-300, 0, 200)
    np.testing.assert_allclose(erf.erfc(erf.erfcinv_float64(p)), p, rtol=3e-13)


def test_digamma_and_polygamma_obey_their_recurrences():
    x = np.linspace(-4.77, 9.3, 50)
    np.testing.assert_allclose(gamma.digamma(x + 1) - gamma.digamma(x), 1 / x, rtol=1e-11)
    for n in (1, 2, 5):
        step = (-1) ** n * math.factorial(n) / x ** (n + 1)
        np.testing.assert_allclose(gamma.polygamma(n, x), gamma.polygamma(n, x + 1) - step, rtol=1e-11)


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "erfcx", "erfinv", "ndtri", "ndtr", "log_ndtr", "digamma", "i0e", "gammaln", "entr"]
)
def test_special_functions_beyond_the_numbers_are_pytorchs(name):
    points = [INF, -INF, NAN, 0.0, -0.0, -1.0, -2.0, 1.0]
    for kind in ("float64", "float32"):
        ours, theirs = (
            getattr(module.special, name)(module.tensor(points, dtype=getattr(module, kind))) for module in BOTH
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


def test_float32_erf_is_right_everywhere():
    x = np.concatenate([np.linspace(-6, 6, 50001), np.logspace(-30, 38, 500), [INF, -INF]]).astype(np.float32)
    expected = np.array([math.erf(float(one)) for one in x])
    np.testing.assert_allclose(erf.erf(x), expected, rtol=4e-7, atol=0)
    assert np.isnan(erf.erf(np.array([NAN, 1e30], np.float32))).tolist() == [True, False]


# --- kernels against what they stand for -----------------------------------------------------------------------------


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (37, 1000)])
def test_gelu_kernels_agree_with_gelu_written_in_ops(approximate, shape):
    rng = np.random.default_rng(0)
    x, grad = np.asarray(rng.normal(0, 2, shape)), np.asarray(rng.normal(0, 1, shape))
    wanted = torch.tensor(x, requires_grad=True)
    result = torch.nn.functional.gelu(wanted, approximate=approximate)
    (slope,) = torch.autograd.grad(result, wanted, torch.tensor(grad))
    forward, backward = (gated_activations.gelu, gated_activations.gelu_gradient) if approximate == "none" else (
        gated_activations.gelu_tanh, gated_activations.gelu_tanh_gradient)  # fmt: skip
    for kind, tolerance in ((np.float64, 1e-13), (np.float32, 5e-6)):
        out = forward(x.astype(kind))
        np.testing.assert_allclose(out, result.detach().numpy(), rtol=tolerance, atol=tolerance)
        found = backward(grad.astype(kind), x.astype(kind))
        np.testing.assert_allclose(found, slope.numpy(), rtol=tolerance, atol=tolerance)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 90),
    columns=st.integers(1, 90),
    flat=st.booleans(),
    kind=st.sampled_from(["float16", "float32", "float64"]),
    seed=st.integers(0, 9),
)
def test_choosing_by_bits_is_choosing_by_branches(rows, columns, flat, kind, seed):
    rng = np.random.default_rng(seed)
    pool = np.array([0.0, -0.0, 1.5, NAN, INF, -INF], kind)
    values, others = rng.choice(pool, (rows, columns)), rng.choice(pool, (1 if flat else rows, columns))
    mask = rng.random((rows, 1 if flat else columns)) < 0.5
    bits = f"i{values.dtype.itemsize}"
    np.testing.assert_array_equal(
        masked_choice.chosen(mask, values, others).view(bits), np.where(mask, values, others).view(bits)
    )
    np.testing.assert_array_equal(masked_choice.kept(values, mask), np.where(mask, values, 0))


def test_where_does_not_warn_of_what_it_leaves_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = backlight.tensor([0.0, 4.0], requires_grad=True)
        backlight.where(x > 0, x, 1.0).log().sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]
