"""From one seed come PyTorch's numbers, to the last bit: by every function that draws, in every dtype, at any size."""

import math
import warnings

import numpy as np
import pytest
import torch

import backlight

FLOATS = ["float16", "bfloat16", "float32", "float64"]
WHOLE = ["uint8", "int8", "int16", "int32", "int64"]
SIZES = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 1000]

# s is the size, d the dtype, g a generator.
OF_FLOATS = """
torch.rand(s, dtype=d)
torch.randn(s, dtype=d)
torch.rand(s, dtype=d, generator=g)
torch.rand_like(torch.empty(s, dtype=d))
torch.randn_like(torch.empty(s, dtype=d))
torch.randint(-3, 10, (s,), dtype=d)
torch.randint_like(torch.empty(s, dtype=d), 5)
torch.empty(s, dtype=d).uniform_(-2, 3)
torch.empty(s, dtype=d).normal_(1, 2, generator=g)
torch.empty(s, dtype=d).exponential_(1.5)
torch.empty(s, dtype=d).geometric_(0.3)
torch.empty(s, dtype=d).cauchy_(1, 2)
torch.empty(s, dtype=d).log_normal_(0.1, 0.5)
torch.empty(s, dtype=d).random_()
torch.empty(s, dtype=d).random_(-5, 7)
torch.empty(s, dtype=d).bernoulli_(0.3)
torch.empty(s, dtype=d).bernoulli_(torch.full((s,), 0.3, dtype=torch.float64))
torch.bernoulli(torch.full((s,), 0.3, dtype=d))
torch.bernoulli(torch.ones(s, dtype=d), 0.7)
torch.poisson(torch.full((s,), 3.0, dtype=d))
torch.poisson(torch.full((s,), 30.0, dtype=d))
torch.normal(torch.zeros(s, dtype=d), torch.ones(s, dtype=d))
torch.normal(torch.zeros(s, dtype=d), 2.0)
torch.normal(1.0, torch.ones(s, dtype=d))
torch.normal(1.0, 2.0, (s,), dtype=d)
torch.randperm(s, dtype=d)
F.dropout(torch.ones(s, dtype=d), 0.3)
F.dropout(torch.ones(s, dtype=d), 0.5, inplace=True)
F.alpha_dropout(torch.ones(s, dtype=d), 0.3, True)
init.trunc_normal_(torch.empty(s, dtype=d))
torch.empty(s, 3, dtype=d).t().uniform_()
torch.empty(s, 3, dtype=d).t().normal_()
torch.zeros(s, 4, dtype=d)[:, ::2].normal_()
torch.zeros(s, 4, dtype=d)[:, 1].uniform_()
torch.zeros(s, 4, dtype=d)[:, 1].bernoulli_(0.4)
torch.zeros(s, 4, dtype=d)[:, ::2].exponential_()
torch.zeros(s, 4, dtype=d)[:, ::2].random_(50)
torch.rand_like(torch.empty(s, 3, dtype=d).t())
torch.rand_like(torch.empty(1, dtype=d).expand(s))
F.dropout(torch.ones(s, 3, dtype=d).t(), 0.3)
"""
OF_WHOLE = """
torch.randint(0, 2, (s,), dtype=d)
torch.randint(0, 100, (s,), dtype=d)
torch.randint_like(torch.zeros(s, dtype=d), 2)
torch.zeros(s, dtype=d).random_()
torch.zeros(s, dtype=d).random_(2)
torch.zeros(s, dtype=d).random_(0, 2)
torch.zeros(s, dtype=d).bernoulli_(0.3)
torch.zeros(s, dtype=d).bernoulli_(torch.full((s,), 0.5))
torch.zeros(s, dtype=d).geometric_(0.3)
torch.randperm(min(s, 100), dtype=d)
torch.rand_like(torch.zeros(s, dtype=d), dtype=torch.float32)
"""
# s is a shape of several dims.
OF_SHAPES = """
F.dropout1d(torch.ones(*s[:3], dtype=d), 0.4)
F.dropout2d(torch.ones(*s, dtype=d), 0.4)
F.dropout3d(torch.ones(*s, dtype=d), 0.4)
F.feature_alpha_dropout(torch.ones(*s, dtype=d), 0.4, True)
F.scaled_dot_product_attention(*[torch.ones(*s, dtype=d)] * 3, dropout_p=0.3)
torch.multinomial(torch.rand(5, 20).to(d), 7)
torch.multinomial(torch.rand(5, 20).to(d), 30, replacement=True)
torch.multinomial(torch.rand(50).to(d), 1)
init.uniform_(torch.empty(*s, dtype=d), -1, 2)
init.normal_(torch.empty(*s, dtype=d), 1, 0.1)
init.xavier_uniform_(torch.empty(*s, dtype=d))
init.xavier_normal_(torch.empty(*s, dtype=d))
init.kaiming_uniform_(torch.empty(*s, dtype=d), a=math.sqrt(5))
init.kaiming_normal_(torch.empty(*s, dtype=d), mode="fan_out", nonlinearity="relu")
init.trunc_normal_(torch.empty(*s, dtype=d), 1.0, 2.0, -0.5, 0.5)
init.trunc_normal_(torch.empty(*s, dtype=d), 0.0, 0.02)
init.sparse_(torch.empty(*s[:2], dtype=d), 0.5)
init.dirac_(torch.empty(4, *s[1:3], dtype=d), 2)
"""
MODULES = """
nn.Linear(5, 7, dtype=d)
nn.Bilinear(3, 4, 5, dtype=d)
nn.Embedding(10, 7, dtype=d)
nn.EmbeddingBag(10, 7, dtype=d)
nn.Conv1d(2, 4, 3, dtype=d)
nn.Conv2d(3, 6, (2, 3), groups=3, dtype=d)
nn.Conv3d(2, 4, 3, dtype=d)
nn.ConvTranspose2d(2, 4, 3, dtype=d)
nn.LSTM(4, 5, 2, bidirectional=True, dtype=d)
nn.GRU(4, 5, 2, dtype=d)
nn.RNN(4, 5, dtype=d)
nn.LSTMCell(3, 4, dtype=d)
nn.MultiheadAttention(8, 2, dtype=d)
nn.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True, dtype=d)
nn.TransformerEncoderLayer(8, 2, 16, dtype=d)
nn.TransformerDecoderLayer(8, 2, 16, dtype=d)
nn.Transformer(8, 2, 2, 2, 16, dtype=d)
nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], dtype=d)
"""


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def bits(tensor) -> tuple:
    """Return shape, dtype and every bit of a tensor."""
    tensor = tensor.detach()
    wide = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor
    return tuple(tensor.shape), str(tensor.dtype), np.ascontiguousarray(wide.numpy()).tobytes()


def drawn(module, expression: str, size, dtype: str) -> list:
    """Return what an expression draws, and the next number of either generator."""
    module.manual_seed(123)
    nn, g = module.nn, module.Generator().manual_seed(9)
    names = {"torch": module, "nn": nn, "F": nn.functional, "init": nn.init, "math": math}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = eval(expression, {**names, "s": size, "d": getattr(module, dtype), "g": g})
    tensors = list(given.parameters()) if isinstance(given, nn.Module) else [given]
    return [*map(bits, tensors), module.rand(1).item(), module.rand(1, generator=g).item()]


def assert_drawn_alike(expression: str, sizes, dtypes) -> None:
    for dtype in dtypes:
        for size in sizes:
            ours, theirs = (drawn(module, expression, size, dtype) for module in (backlight, torch))
            assert ours == theirs, f"{expression} with size {size} and dtype {dtype}"


@pytest.mark.parametrize("expression", lines(OF_FLOATS))
def test_floats(expression):
    assert_drawn_alike(expression, SIZES, FLOATS)


@pytest.mark.parametrize("expression", lines(OF_WHOLE))
def test_whole_numbers(expression):
    assert_drawn_alike(expression, SIZES, WHOLE)


@pytest.mark.parametrize("expression", lines(OF_SHAPES))
def test_whole_channels_and_first_values(expression):
    assert_drawn_alike(expression, [(4, 5, 6), (2, 3, 4, 5), (2, 3, 4, 5, 6)], FLOATS)


@pytest.mark.parametrize("expression", lines(MODULES))
def test_modules(expression):
    assert_drawn_alike(expression, [None], FLOATS)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "expression",
    [
        "torch.empty(s, dtype=d).exponential_()",
        "torch.empty(s, dtype=d).cauchy_()",
        "torch.empty(s, dtype=d).log_normal_()",
        "torch.empty(s, 3, dtype=d).t().normal_()",
    ],
)
def test_halves_are_rounded_twice_as_in_pytorch(expression, dtype):
    assert_drawn_alike(expression, [70_000], [dtype])


@pytest.mark.parametrize("limit", [2, 2**16, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**63 - 1])
def test_ranges_of_whole_numbers(limit):
    for expression in (
        "torch.randint(s, (100,))",
        "torch.randint(-s + 1, s, (17,))",
        "torch.zeros(33).long().random_(s)",
    ):
        assert_drawn_alike(expression, [limit], ["int64"])


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool"])
def test_a_permutation_needs_a_dtype_that_holds_it(dtype):
    for count in (2, 128, 129, 256, 257, 2049, 2050, 32768, 32769):
        outcomes = []
        for module in (torch, backlight):
            module.manual_seed(1)
            try:
                outcomes.append(module.randperm(count, dtype=getattr(module, dtype)).tolist())
            except RuntimeError as problem:
                outcomes.append(str(problem))
        theirs, ours = outcomes
        assert ours.startswith(theirs.rstrip(".")) if isinstance(theirs, str) else ours == theirs, (dtype, count)


def test_orthogonal_matrices_agree_to_the_rounding_of_their_factorisation():
    for shape in ((2, 3), (5, 3), (4, 5, 6)):
        torch.manual_seed(3)
        theirs = torch.nn.init.orthogonal_(torch.empty(shape, dtype=torch.float64))
        backlight.manual_seed(3)
        ours = backlight.nn.init.orthogonal_(backlight.empty(shape, dtype=backlight.float64))
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-14)
        assert backlight.rand(1).item() == torch.rand(1).item()


def test_first_values_that_cannot_be_made_are_refused():
    for source in ("sparse_(torch.empty(3), 0.5)", "dirac_(torch.empty(3, 3))", "dirac_(torch.empty(3, 3, 3), 2)"):
        with pytest.raises(ValueError) as theirs:
            eval(f"torch.nn.init.{source}", {"torch": torch})
        with pytest.raises(ValueError) as ours:
            eval(f"torch.nn.init.{source}", {"torch": backlight})
        assert str(ours.value).startswith(str(theirs.value))
