"""Parameters of another dtype than the input: refused as PyTorch refuses them, not promoted in silence."""

from itertools import product

import pytest
import torch
from snippets import always_warning

import backlight

KINDS = ("float32", "float64", "bfloat16")
PARTS = (None, *KINDS)
LAYERS = {
    "layer_norm": "F.layer_norm(x, (4,), w(4), b(4))",
    "group_norm": "F.group_norm(x, 3, w(3), b(3))",
    "batch_norm": "F.batch_norm(x, None, None, w(3), b(3), True)",
    "batch_norm in evaluation": "F.batch_norm(x, torch.zeros(3), torch.ones(3), w(3), b(3), False)",
    "instance_norm": "F.instance_norm(x, None, None, w(3), b(3))",
    "linear": "F.linear(x, w(2, 4), b(2))",
    "linear of a vector": "F.linear(x[0, 0], w(2, 4), b(2))",
    "addmm": "torch.addmm(b(2), x[0], w(4, 2))",
    "conv1d": "F.conv1d(x, w(2, 3, 1), b(2))",
    "prelu": "F.prelu(x, w(3))",
}


def said(module, layer: str, input: str, weight: str | None, bias: str | None) -> tuple:
    """Return the kind of error and its text, and the result's dtype."""

    def part(kind):
        return lambda *sizes: None if kind is None else module.ones(sizes, dtype=getattr(module, kind))

    source = f"x = torch.ones(2, 3, 4, dtype=torch.{input})\nprint({LAYERS[layer]}.dtype)"
    outcome = always_warning(module, source, F=module.nn.functional, w=part(weight), b=part(bias))
    return outcome.error, outcome.printed


def combinations(layer: str) -> list[tuple]:
    """Return the dtypes to try: input, weight, bias."""
    inputs = ("float64",) if layer.startswith("conv") else KINDS  # of others PyTorch's words depend on its threads
    weights = PARTS if layer.endswith(("norm", "evaluation")) else KINDS
    return list(product(inputs, weights, KINDS if layer == "addmm" else PARTS))


@pytest.mark.parametrize("layer", LAYERS)
def test_other_dtypes_are_refused_in_pytorchs_words(layer):
    for kinds in combinations(layer):
        (theirs, their_dtype), (ours, dtype) = said(torch, layer, *kinds), said(backlight, layer, *kinds)
        assert dtype == their_dtype, (kinds, theirs, ours)
        if theirs is not None:
            assert isinstance(ours, type(theirs)), (kinds, theirs, ours)
            assert str(ours).startswith(str(theirs)), (kinds, theirs, ours)
