"""Attention over texts laid end to end is that of each text alone, natively and not, with both derivatives."""

import numpy as np
import pytest
import torch
from test_native import KINDS

import backlight
from backlight.autograd import gradcheck, gradgradcheck
from backlight.kernels.native import compiled
from backlight.kernels.nn import varlen_attention
from backlight.ops.nn.attention import ragged_attention

SIZES = [  # heads, dim, lengths
    (1, 1, (1,)),
    (2, 4, (3, 0, 5)),
    (3, 5, (16, 17, 1)),
    (12, 32, (20, 256, 77, 1)),
    (3, 40, (16, 17, 300)),
    (2, 64, (512, 33)),
]


def drawn(shape, kind=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


def references():
    return varlen_attention.ragged_attention, varlen_attention.ragged_attention_gradient


def plain():
    return tuple(getattr(function, "__wrapped__", function) for function in references())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("heads", "dim", "lengths"), SIZES)
def test_the_kernels_agree_with_their_references(level, heads, dim, lengths, biased, kind):
    forward, backward = references()
    exact_forward, exact_backward = plain()
    qkv, scale = drawn((sum(lengths), 3 * heads * dim), kind), dim**-0.5
    grad = drawn((sum(lengths), heads * dim), kind, 1)
    bias = drawn(len(qkv), kind, 2) if biased else None
    wide = None if bias is None else bias.astype(np.float64)
    out, logs = forward(qkv, bias, lengths, heads, scale)
    expected, expected_logs = exact_forward(qkv.astype(np.float64), wide, lengths, heads, scale)
    found, of_bias = backward(grad, qkv, bias, logs, lengths, heads, scale)
    slopes, exact_of_bias = exact_backward(
        grad.astype(np.float64), qkv.astype(np.float64), wide, expected_logs, lengths, heads, scale
    )
    compared = [(out, expected), (logs, expected_logs), (found, slopes)]
    if biased:
        compared.append((of_bias, exact_of_bias))
    else:
        assert of_bias is None and exact_of_bias is None
    for mine, exact in compared:
        assert mine.dtype == kind
        np.testing.assert_allclose(mine, exact, rtol=0, atol=16 * np.finfo(kind).eps * np.abs(exact).max())


def test_rows_far_apart_are_read_where_they_lie(level):
    wide = drawn((40, 100), np.float32)
    forward, backward = references()
    together, apart = np.ascontiguousarray(wide[:, 4:28]), wide[:, 4:28]
    out, logs = forward(apart, None, (40,), 2, 0.5)
    for mine, other in zip((out, logs), forward(together, None, (40,), 2, 0.5)):
        np.testing.assert_array_equal(mine, other)
    grad = wide[:, 50:58]
    np.testing.assert_array_equal(
        backward(grad, apart, None, logs, (40,), 2, 0.5)[0],
        backward(np.ascontiguousarray(grad), together, None, logs, (40,), 2, 0.5)[0],
    )


def test_large_scores_and_nan_stay_in_their_text(level):
    qkv = drawn((30, 24), np.float32)
    qkv[:10] *= 1e4
    qkv[10, 3] = np.nan
    out, _ = varlen_attention.ragged_attention(qkv, None, (10, 8, 12), 2, 1.0)
    assert np.isfinite(out[:10]).all() and np.isnan(out[10]).any() and np.isfinite(out[18:]).all()


def test_the_number_of_threads_changes_no_bit(level):
    lengths, heads = (50, 120, 7, 200, 64), 6
    qkv, grad = drawn((sum(lengths), 3 * heads * 16), np.float32), drawn((sum(lengths), heads * 16), np.float32, 1)
    bias = drawn(len(qkv), np.float32, 2)
    before, found = compiled.threads(), []
    for count in (1, 3):
        compiled.set_threads(count)
        out, logs = varlen_attention.ragged_attention(qkv, bias, lengths, heads, 0.25)
        slopes = varlen_attention.ragged_attention_gradient(grad, qkv, bias, logs, lengths, heads, 0.25)
        found.append((out, logs, *slopes))
    compiled.set_threads(before)
    for one, two in zip(*found):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_each_text_gets_what_pytorch_gives_it_alone(dtype):
    lengths, heads, dim = (4, 0, 9, 1), 3, 5
    values, slopes = drawn((14, 3 * heads * dim)), drawn((14, heads * dim), seed=1)
    ours = backlight.tensor(values, dtype=getattr(backlight, dtype), requires_grad=True)
    theirs = torch.tensor(values, dtype=getattr(torch, dtype), requires_grad=True)
    parts = theirs.unflatten(1, (3, heads, dim)).permute(1, 2, 0, 3).split(lengths, 2)
    alone = [torch.nn.functional.scaled_dot_product_attention(*part.unbind(0)) for part in parts]
    expected = torch.cat([one.transpose(0, 1).flatten(1) for one in alone])
    out = ragged_attention(ours, None, lengths, heads)
    out.backward(backlight.tensor(slopes, dtype=out.dtype))
    expected.backward(torch.tensor(slopes, dtype=expected.dtype))
    near = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}[dtype]
    for mine, other in ((out, expected), (ours.grad, theirs.grad)):
        mine, other = mine.detach().to(backlight.float64).numpy(), other.detach().double().numpy()
        np.testing.assert_allclose(mine, other, rtol=near, atol=near)


def test_both_derivatives_are_right():
    qkv = backlight.tensor(drawn((6, 12)), requires_grad=True)
    bias = backlight.tensor(drawn(6, seed=1), requires_grad=True)
    for inputs in ((qkv, None), (qkv, bias)):
        assert gradcheck(lambda x, b: ragged_attention(x, b, (2, 0, 4), 2), inputs)
        assert gradgradcheck(lambda x, b: ragged_attention(x, b, (2, 0, 4), 2), inputs)


def test_a_bias_of_minus_infinity_leaves_a_key_out():
    qkv, bias = drawn((6, 12)), np.array([0, 0, -np.inf, 0, 0, 0])
    out = ragged_attention(backlight.tensor(qkv), backlight.tensor(bias), (4, 2), 2)[[0, 1, 3, 4, 5]]
    kept = ragged_attention(backlight.tensor(qkv[[0, 1, 3, 4, 5]]), None, (3, 2), 2)
    np.testing.assert_allclose(out.numpy(), kept.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "bias", [backlight.zeros(3, dtype=backlight.float64), backlight.zeros(4, 1), backlight.zeros(4)]
)
def test_a_bias_must_be_a_number_a_token(bias):
    with pytest.raises(RuntimeError, match=r"bias must be \(4,\) of float64, one number a token, got \["):
        ragged_attention(backlight.zeros(4, 12, dtype=backlight.float64), bias, (2, 2), 2)


@pytest.mark.parametrize(("shape", "lengths"), [((5, 12), (2, 2)), ((4, 13), (2, 2)), ((4, 3, 12), (2, 2))])
def test_lengths_and_heads_must_fit(shape, lengths):
    with pytest.raises(RuntimeError, match=r"qkv must be \(tokens, 3 · heads · dim\), got"):
        ragged_attention(backlight.zeros(shape), None, lengths, 2)
