"""The derivatives' formulas of PyTorch's nodes: our own of the same name, and those of nodes that only PyTorch has."""

from functools import lru_cache

from backlight.codegen.declaration import TABLE, camel

_NORM = {
    "input": "(g − mean(g) − x̂ · mean(g · x̂)) / σ with g = grad · weight",
    "weight": "Σ grad · x̂",
    "bias": "Σ grad",
}
_CONVOLUTION = {
    "input": "grad convolved with the flipped weight",
    "weight": "the input correlated with grad",
    "bias": "Σ grad over batch and positions",
}
# By edge, in PyTorch's order, which for some differs from ours.
ONLY_PYTORCHS = {
    "AddmmBackward0": {"input": "beta · grad", "mat1": "alpha · grad · mat2ᵀ", "mat2": "alpha · mat1ᵀ · grad"},
    "ReshapeAliasBackward0": {"input": "grad in the input's shape"},
    "AsStridedBackward1": {"input": "grad added to the places that were read"},
    "torch::autograd::CopyBackwards": {"": "", "src": "grad"},
    "torch::autograd::CopySlices": {
        "base": "grad, with 0 where the view wrote",
        "written": "grad of what the view wrote",
    },
    "NativeLayerNormBackward0": _NORM,
    "NativeBatchNormBackward0": _NORM,
    "NativeGroupNormBackward0": _NORM,
    "NativeDropoutBackward0": {"input": "grad · mask / (1 − p)"},
    "ConvolutionBackward0": _CONVOLUTION,
    "MkldnnConvolutionBackward0": _CONVOLUTION,
    "MkldnnLinearBackward0": {"input": "grad · weight", "weight": "gradᵀ · input", "bias": "Σ grad"},
    **{
        f"ScaledDotProduct{kind}Backward0": {
            "query": "dS · key · scale",
            "key": "dSᵀ · query · scale",
            "value": "Pᵀ · grad",
        }
        for kind in ("FlashAttentionForCpu", "FlashAttention", "EfficientAttention", "CudnnAttention")
    },
    "MmBackward0": {"input": "grad · mat2ᵀ", "mat2": "inputᵀ · grad"},
    "MulBackward1": {"input": "grad · other"},
    "DivBackward1": {"input": "grad / other"},
    "NllLossBackward0": {"input": "−grad · weight at the target, 0 elsewhere"},
    "NllLoss2DBackward0": {"input": "−grad · weight at the target, 0 elsewhere"},
    "FusedDropoutBackward0": {"input": "grad · mask / (1 − p)"},
}


@lru_cache(1)
def _our_formulas(count: int) -> dict[str, dict[str, str]]:
    """Return the formulas of our own ops by the names of their nodes.

    Of several ops with one name of node it is the op that is called so, else the one that was declared first: ops of
    sparse tensors, which come when they are needed, never stand for the dense ones.

    Args:
        count: how many ops there are: more come when their module is first needed.
    """
    found: dict[str, dict[str, str]] = {}
    for declared in TABLE.values():
        if camel(declared.name) == declared.node_name.partition("Backward")[0]:
            found[declared.node_name] = declared.formulas()
    for declared in TABLE.values():
        found.setdefault(declared.node_name, declared.formulas())
    return found


def formulas_of(name: str) -> dict[str, str]:
    """Return the formulas of a node by its name, one an edge; {} if there are none."""
    return ONLY_PYTORCHS.get(name) or _our_formulas(len(TABLE)).get(name, {})
