"""Random numbers are drawn in PyTorch's order for transposed, permuted, sliced and expanded inputs too."""

import numpy as np
import pytest
import torch

import backlight

LAYOUTS = {
    "contiguous": "numbers.reshape(4, 6, 10)",
    "transposed": "numbers[:40].reshape(8, 5).t()",
    "one pair swapped": "numbers.reshape(2, 3, 4, 10).transpose(1, 2)",
    "permuted": "numbers.reshape(2, 3, 4, 10).permute(3, 0, 2, 1)",
    "sliced": "numbers.reshape(24, 10)[:, ::2]",
    "sliced, transposed": "numbers.reshape(24, 10)[2:, ::2].t()",
    "expanded": "numbers[:5].reshape(1, 5).expand(8, 5)",
    "expanded in the middle": "numbers[:24].reshape(8, 1, 3).expand(8, 5, 3).transpose(0, 2)",
    "expanded, transposed": "numbers[:8].reshape(8, 1, 1).expand(8, 5, 3).transpose(0, 2)",
    "float64": "numbers[:40].double().reshape(8, 5).t()",
}
DRAWS = """
F.dropout(x, 0.5)
F.dropout(x, 0.3)
F.dropout(t.empty_like(x).copy_(x), 0.3, inplace=True)
F.alpha_dropout(x, 0.5, True)
F.feature_alpha_dropout(x, 0.5, True)
t.feature_dropout(x, 0.5, True)
t.rand_like(x)
t.randn_like(x)
t.randint_like(x, 0, 100)
t.rand_like(x, memory_format=t.contiguous_format)
t.empty_like(x).bernoulli_(0.5)
t.empty_like(x).bernoulli_(x / 1000)
t.bernoulli(x / 1000)
t.bernoulli(x, 0.3)
t.empty_like(x).exponential_()
t.normal(x, 1.0)
t.poisson(x)
t.multinomial(x.flatten(1), 2)
t.multinomial(x if x.ndim == 2 else x[0].flatten(1), 2)
F.rrelu(-x, training=True)
F.gumbel_softmax(x)
""".strip().splitlines()


def drawn(module, expression: str, layout: str) -> np.ndarray:
    numbers = module.arange(1.0, 241.0)
    x = eval(layout, {"numbers": numbers})
    module.manual_seed(0)
    return eval(expression, {"t": module, "F": module.nn.functional, "x": x}).numpy()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("expression", DRAWS)
def test_draws_follow_the_memory_of_their_input(expression, layout):
    mine, its = (drawn(module, expression, LAYOUTS[layout]) for module in (backlight, torch))
    np.testing.assert_allclose(mine, its, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_empty_like_has_pytorchs_strides(layout):
    mine, its = (
        module.empty_like(eval(LAYOUTS[layout], {"numbers": module.arange(240.0)})) for module in (backlight, torch)
    )
    assert mine.stride() == its.stride()


def test_a_transformer_layer_with_dropout_gives_pytorchs_output_for_the_same_seed():
    outputs = []
    for module in (backlight, torch):
        module.manual_seed(0)
        layer = module.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        outputs.append(layer(module.randn(8, 12, 32)).detach().numpy())
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-5)
