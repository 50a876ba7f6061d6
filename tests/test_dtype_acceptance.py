"""A Python number beside each dtype: taken, refused, wrapped round or made inf exactly as PyTorch does.

Every row is evaluated on both, with tensors of each dtype and numbers that they can and cannot hold.
"""

import warnings

import numpy as np
import pytest
import torch

import backlight
from parity import KINDS, lines

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
        assert str(ours).startswith(str(theirs).splitlines()[0][:60].rstrip(".")), f"{what}: {ours!r}, not {theirs!r}"
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
                assert_alike(ours, theirs, f"{expression} with s = {number!r} and x of {dtype}")
