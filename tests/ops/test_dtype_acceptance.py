"""A Python number beside each dtype: taken, refused, wrapped round or made inf exactly as PyTorch does.

Every row is evaluated on both, with tensors of each dtype and numbers that they can and cannot hold.
"""

import warnings

import numpy as np
import pytest
import torch
from parity import KINDS, lines

import backlight

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
NUMBERS = (
    *(True, -1, 5, 300, -300, 70_000, 2**63 - 1, 2**63, -(2**63), 2**64, -(2**63) - 1),
    *(1.5, -0.5, 255.9, 1e5, 1e39, -1e30, float("inf"), float("-inf"), float("nan")),
)
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-9}

ELEMENTS = lines("""
x.clone().fill_(s)
x[:1].clone().fill_(s)
torch.full((2,), s, dtype=d)
torch.full((2,), s)
torch.full_like(x, s)
x.new_full((2,), s)
torch.tensor([s], dtype=d)
torch.tensor(s, dtype=d)
torch.scalar_tensor(s, dtype=d)
torch.as_tensor(s, dtype=d)
x.new_tensor([s])
torch.fill(x, s)
torch.nn.init.constant_(x.clone(), s)
x.masked_fill(m, s)
x.clone().masked_fill_(m, s)
x.index_fill(0, i, s)
x.clone().index_fill_(0, i, s)
put(x, 0, s)
put(x, m, s)
put(x, slice(0, 2), s)
put(x, i, s)
put(x, Ellipsis, s)
x.scatter(0, i, s)
x.clone().scatter_(0, i, s)
x.scatter(0, i, s, reduce="add")
x.scatter(0, i, s, reduce="multiply")
torch.constant_pad_nd(x, (1, 1), s)
torch.where(m, x, s)
torch.where(m, s, x)
torch.clamp(x, s)
torch.clamp(x, max=s)
torch.clamp(x, s, s)
x.clamp_min(s)
x.clamp_max(s)
x.clone().clamp_(s)
x.clone().clamp_(max=s)
torch.linspace(0, s, 3, dtype=d)
torch.linspace(s, s, 3, dtype=d)
torch.logspace(0, s, 3, dtype=d)
""")

OPERANDS = lines("""
x + s
s + x
x.clone().add_(s)
x * s
x.clone().mul_(s)
x / s
x.clone().div_(s)
x.clone().remainder_(s)
x.clone().fmod_(s)
x & s
x | s
x ^ s
x == s
x != s
x < s
x <= s
x > s
x >= s
s < x
x.clone().eq_(s)
x.clone().lt_(s)
torch.xlogy(x, s)
torch.xlogy(s, x)
torch.special.xlog1py(s, x)
torch.true_divide(x, s)
torch.result_type(x, s)
""")

# Both refuse, for two reasons of which PyTorch names the other one first: the result's dtype, or the number's size.
OTHER_REASON_FIRST = ("x.clone().clamp_(s)", "x.clone().clamp_(max=s)")


def put(x, key, value):
    x = x.clone()
    x[key] = value
    return x


def outcome(module, expression: str, dtype: str, number):
    """Return what an expression gives, or the exception that it raises."""
    d = getattr(module, dtype)
    x = module.tensor([0, 1, 1] if dtype == "bool" else [0, 1, 2] if dtype == "uint8" else [-1, 1, 2]).to(d)
    m, i = module.tensor([True, False, True]), module.tensor([0, 2])
    try:
        return eval(expression, {"torch": module, "x": x, "m": m, "i": i, "s": number, "d": d, "put": put})
    except Exception as problem:
        return problem


def assert_alike(ours, theirs, what: str) -> None:
    """Assert that both are errors of one kind with the same first words, or equal tensors of one dtype."""
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{what}: gives {ours}, PyTorch raises {theirs!r}"
        kind = next(kind for kind in KINDS if isinstance(theirs, kind))
        assert isinstance(ours, kind), f"{what}: {ours!r}, PyTorch raises {theirs!r}"
        said = str(theirs).splitlines()[0][:60].rstrip(".").split(" output type ")[0]  # clamp_ names dtypes as C does
        assert str(ours).startswith(said), f"{what}: {ours!r}, not {theirs!r}"
        return
    assert not isinstance(ours, Exception), f"{what}: {ours!r}, PyTorch gives {theirs}"
    if not isinstance(theirs, torch.Tensor):
        assert str(ours) == str(theirs), what
        return
    assert str(ours.dtype) == str(theirs.dtype), f"{what}: {ours.dtype}, PyTorch gives {theirs.dtype}"
    tolerance = TOLERANCE.get(str(theirs.dtype)[6:], 0)
    np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), tolerance, tolerance, err_msg=what)


@pytest.mark.parametrize("expression", [*ELEMENTS, *OPERANDS])
def test_a_number_meets_a_dtype_as_in_pytorch(expression):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for number in NUMBERS:
                ours, theirs = [outcome(module, expression, dtype, number) for module in (backlight, torch)]
                if expression in OTHER_REASON_FIRST and "float" not in dtype and number in (1e39, -1e30):
                    assert isinstance(ours, RuntimeError) and isinstance(theirs, RuntimeError)
                    continue
                assert_alike(ours, theirs, f"{expression} with s = {number!r} and x of {dtype}")


OF_A_DTYPE = lines("""
torch.addcmul(x, x, x)
torch.hypot(x, x)
torch.logaddexp(x, x)
torch.logaddexp2(x, x)
torch.logcumsumexp(x, 0)
torch.frexp(x)[0]
torch.cdist(x[None], x[None])
torch.cdist(x[None], x[None], 3)
torch.kthvalue(x, 1)[0]
torch.topk(x, 1)[0]
torch.argmax(x)
torch.argmin(x, 0)
torch.trace(x[:2, None] * x[None, :2])
torch.isin(x, x)
torch.dist(x, x)
torch.mvlgamma(x + 5, 1) if d != torch.bool else torch.mvlgamma(x, 1)
x << x[:1].abs() if d != torch.bool else x << x
x >> x[:1].abs() if d != torch.bool else x >> x
torch.bincount(x.abs()) if d != torch.bool else torch.bincount(x)
torch.searchsorted(x, x)
torch.bucketize(x, x)
torch.remainder(x, x.sign() + 5) if d != torch.bool else torch.remainder(x, x)
torch.fmod(x, x.sign() + 5) if d != torch.bool else torch.fmod(x, x)
torch.clamp(x, x[:1], x[1:2]) if d != torch.bool else torch.clamp(x, True)
torch.div(x[:2], x[1:], rounding_mode="floor")
torch.div(x[:2], x[1:], rounding_mode="trunc")
torch.nn.functional.relu(x)
torch.nn.functional.relu6(x)
torch.nn.functional.hardtanh(x, 0, 2)
torch.nn.functional.threshold(x, 1, 5)
torch.nn.functional.softsign(x)
torch.nn.functional.glu(x[:2])
torch.nn.functional.group_norm(x[None, :2, None], 1)
torch.nn.functional.smooth_l1_loss(x, x)
torch.nn.functional.huber_loss(x, x)
torch.nn.functional.soft_margin_loss(x, x)
torch.nn.functional.kl_div(x, x, reduction="sum")
torch.nn.functional.nll_loss(x[None], i[:1])
torch.nn.functional.multi_margin_loss(x[None], i[:1])
torch.nn.functional.unfold(x[None, None, None], 1)
torch.linalg.vecdot(x, x)
torch.special.erfcx(x)
torch.special.log_ndtr(x)
torch.triu_indices(2, 2, dtype=d)
torch.tril_indices(2, 2, dtype=d)
torch.signal.windows.hann(3, dtype=d)
x / 300
300 / x
x / -1
torch.nn.functional.dropout(x, 0.0)
torch.nn.functional.dropout(x, 1.0)
torch.nn.functional.dropout(x, 0.5) * 0 if d.is_floating_point else torch.nn.functional.dropout(x, 0.5)
torch.nn.functional.alpha_dropout(x, 0.5, training=True) * 0
torch.nn.functional.dropout1d(x[None], 0.5) * 0
torch.native_dropout(x, 0.5, True)[0] * 0
torch.nn.functional.linear(x[None], x[None], x[:1])
torch.nn.functional.bilinear(x[None], x[None], x[None, None].expand(1, 3, 3), x[:1])
torch.nn.functional.conv1d(x[None, None], x[None, None])
torch.nn.functional.conv2d(x[None, None, None], x[None, None, None])
torch.nn.functional.conv3d(x[None, None, None, None], x[None, None, None, None])
torch.nn.functional.conv_transpose1d(x[None, None], x[None, None])
torch.nn.functional.conv_transpose2d(x[None, None, None], x[None, None, None])
torch.nn.functional.conv_transpose3d(x[None, None, None, None], x[None, None, None, None])
torch.nn.functional.pad(x[None, None], (1, 1), mode="reflect")
torch.nn.functional.pad(x[None, None], (1, 1), mode="replicate")
torch.nn.functional.pad(x[None, None], (1, 1), mode="circular")
torch.nn.functional.pad(x[None, None].expand(1, 3, 3), (1, 1, 1, 1), mode="reflect")
torch.nn.functional.pad(x[None, None].expand(1, 3, 3), (1, 1, 4, 1), mode="reflect")
torch.nn.functional.pad(x[None, None].expand(1, 3, 3), (1, 1, 1, 1), mode="replicate")
torch.nn.functional.pad(x[None, None, None].expand(1, 3, 3, 3), (1,) * 6, mode="replicate")
torch.nn.functional.pad(x[None, None, None].expand(1, 3, 3, 3), (1, 1), mode="reflect")
x.scatter_reduce(0, i, x, "mean")
x.scatter_reduce(0, i, x, "amax")
torch.unravel_index(x.abs() if d != torch.bool else x, (3, 3))[0]
torch.nn.functional.local_response_norm(x[None, :, None], 2)
torch.nn.functional.local_response_norm(x[None, :, None, None], 2)
torch.nn.functional.embedding_bag(i[None], x[:, None])
torch.nn.functional.embedding_bag(i[None], x[:, None], mode="sum")
torch.nn.functional.embedding_bag(i[None], x[:, None], mode="max")
torch.nn.functional.rrelu(x, training=True) * 0
torch.round(x)
torch.round(x, decimals=0)
torch.linalg.ldl_solve(x[:1, None], torch.ones(1, dtype=torch.int32), x[:1, None])
torch.linalg.vander(x)
torch.vander(x.abs() if d != torch.bool else x)
torch.add(x, x, alpha=True)
torch.add(x, x, alpha=1.0)
torch.add(x, x, alpha=1)
torch.add(x, 1, alpha=True)
torch.sub(x, x, alpha=True)
torch.sub(x, x, alpha=1.0)
torch.rsub(x, x, alpha=True)
torch.rsub(x, x, alpha=1.0)
x - True
x - False
x.clone().sub_(True)
x + True
x % True
True * x
torch.nan_to_num(x, 2**70)
torch.nan_to_num(x, 0.0, 2**70, -(2**70))
x**300
torch.arange(2**63, 2**63 + 3)
torch.arange(0, 2**63, 2**62)
torch.arange(-(2**63) - 5, -(2**63))
torch.arange(2**64, 2**64 + 3, dtype=d) if d != torch.bool else torch.arange(1, dtype=d)
torch.range(3, -1, -float("inf"))
torch.range(3, -1, -float("inf"), dtype=d)
torch.range(0, 3, dtype=d)
torch.range(0.5, 3, dtype=d)
torch.cholesky(x[1:2, None])
torch.geqrf(x[:, None])[1]
x.clone()[:, None].expand(3, 3).clone().fill_diagonal_(1.5)
x.clone()[:, None].expand(3, 3).clone().fill_diagonal_(300)
x.clone()[:, None].expand(3, 3).clone().fill_diagonal_(1e39)
""")


@pytest.mark.parametrize("expression", OF_A_DTYPE)
def test_an_op_takes_the_dtypes_that_it_takes_in_pytorch(expression):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in (*DTYPES, "int16"):
            ours, theirs = [outcome(module, expression, dtype, None) for module in (backlight, torch)]
            assert_alike(ours, theirs, f"{expression} with x of {dtype}")


WRITES = lines("""
conj_physical_()
fill_diagonal_(1.0)
fill_(1.0)
zero_()
clamp_(0, 1)
masked_fill_(m, 1.0)
index_fill_(0, i, 1.0)
scatter_(0, i[:, None], 1.0)
t_()
squeeze_()
transpose_(0, 1)
unsqueeze_(0)
set_()
tril_()
normal_()
uniform_()
bernoulli_(0.5)
""")
STATES = {
    "a leaf that requires grad": lambda m: m.ones(3, 3, requires_grad=True),
    "a view of such a leaf": lambda m: m.ones(3, 3, requires_grad=True).view(3, 3),
    "a tensor of inference mode": lambda m: made_in_inference_mode(m),
}
NOT_AS_IN_PYTORCH = {
    ("set_()", "a view of such a leaf"): "refused, in words of its own: set_() has no derivative",
    ("set_()", "a tensor of inference mode"): "PyTorch takes it: nothing is written",
}


def made_in_inference_mode(m):
    with m.inference_mode():
        return m.ones(3, 3)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("call", WRITES)
def test_a_tensor_that_may_not_be_written_to_refuses_every_op_in_place(call, state):
    if (call, state) in NOT_AS_IN_PYTORCH:
        return
    found = []
    for module in (backlight, torch):
        target = STATES[state](module)
        m, i = module.tensor([True, False, True]), module.tensor([0, 2])
        try:
            found.append(bool(eval(f"target.{call}", {"target": target, "m": m, "i": i}) is target))
        except Exception as problem:
            found.append(problem)
    assert_alike(*found, f"{call} on {state}")
