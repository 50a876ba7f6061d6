"""Scaled dot-product attention as one op.

NOTE [Attention]
The forward keeps its probabilities, so that backward is four products and one pass. Scores are never shifted by the
maxima of their rows where they are all small (see kernels/nn/softmax.py). A row that may look at nothing gives
zeros.
"""

import math

import numpy as np

from backlight.codegen.declaration import Array, op
from backlight.codegen.runtime_support import sum_to_shape
from backlight.dispatch.dispatcher import public_function
from backlight.dtypes import from_numpy_dtype
from backlight.engine.tensor_state import TensorState, wrap
from backlight.errors import ShapeError
from backlight.kernels.half_precision import rounded, widened
from backlight.kernels.linalg.matrix_products import matmul
from backlight.kernels.nn import softmax as softmax_kernels
from backlight.kernels.nn import varlen_attention
from backlight.ops.linalg.matrix_products import check_stacks, not_a_tensor
from backlight.ops.nn.softmax import softmax_along
from backlight.ops.random.dropout import check_probability, kept
from backlight.ops.shape.joining import cat
from backlight.ops.type_promotion import is_float
from backlight.sizes import broadcast


@public_function
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Return softmax(query · keyᵀ · scale + mask) · value.

    Shapes: query (…, queries, dim), key (…, keys, dim), value (…, keys, out) -> (…, queries, out)

    Args:
        attn_mask: broadcasts to (…, queries, keys); booleans say what may be looked at, numbers are added to scores.
        dropout_p: the share of the probabilities that is dropped.
        is_causal: let query i look at keys 0 to i only.
        scale: 1 / √dim by default.
        enable_gqa: each head of key and value serves several heads of the query.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or a mask comes with `is_causal` where PyTorch's fused kernel, which
            takes both, does not run: with other than four dims, dropout, or a mask that requires grad.
    """
    _check(query, key, value, attn_mask)
    if enable_gqa:
        key, value = _repeated_heads(query, key), _repeated_heads(query, value)
    if attn_mask is not None:
        _check_mask_shape(query, key, attn_mask)
        if is_causal:
            is_fused = query.ndim == key.ndim == value.ndim == 4 and dropout_p == 0 and not attn_mask.requires_grad
            attn_mask, is_causal = _with_causal(query, key, attn_mask, is_fused), False
    if scale is None:
        scale = 1 / math.sqrt(query._data.shape[-1]) if query._data.shape[-1] else math.inf
    factors = None if dropout_p == 0 else _dropout_factors(query._data, key._data, dropout_p)
    return attention(query, key, value, attn_mask, factors, bool(is_causal), float(scale))


def _dropout_factors(query: Array, key: Array, p: float):
    """Return random factors for the probabilities: 0 with probability p, else 1 / (1 − p)."""
    check_probability(p)
    shape = (*broadcast(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
    found = kept(shape, p, np.dtype(np.float64 if query.dtype == np.float64 else np.float32))
    return wrap(found / (1 - p) if p < 1 else found)


def _scores_shape(query: TensorState, key: TensorState) -> tuple[int, ...]:
    q, k = query._data.shape, key._data.shape
    return (*broadcast(q[:-2], k[:-2]), q[-2], k[-2])


def _check_mask_shape(query: TensorState, key: TensorState, attn_mask: TensorState) -> None:
    """Raise PyTorch's error unless the mask can be added to the scores in place."""
    shape = _scores_shape(query, key)
    common = broadcast(shape, attn_mask._data.shape)
    if common != shape:
        raise ShapeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}")


def _with_causal(query: TensorState, key: TensorState, attn_mask: TensorState, is_fused: bool) -> TensorState:
    """Return a mask that keeps query i from keys after i as well."""
    if not is_fused:
        raise ShapeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True; "
            "combine the two in one mask"
        )
    causal = wrap(softmax_kernels.causal_mask(*_scores_shape(query, key)[-2:]))
    return attn_mask & causal if attn_mask._data.dtype.kind == "b" else attn_mask.masked_fill(~causal, -math.inf)


def _check(query: TensorState, key: TensorState, value: TensorState, attn_mask: TensorState | None) -> None:
    try:
        q, k, v = query._data, key._data, value._data
    except AttributeError:
        raise not_a_tensor("scaled_dot_product_attention", query=query, key=key, value=value) from None
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{q.ndim} key.dim: {k.ndim} and value.dim: {v.ndim} instead."
        )
    if not q.dtype == k.dtype == v.dtype:
        names = [from_numpy_dtype(array.dtype).old_name.lower() for array in (q, k, v)]
        raise ShapeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: "
            f"{names[1]} and value.dtype: {names[2]} instead."
        )
    if not is_float(q.dtype):
        name = from_numpy_dtype(q.dtype).c_name
        raise ShapeError(f"expected m1 and m2 to have the same dtype, but got: float != {name}; convert with .float()")
    if attn_mask is None:
        return
    kind = attn_mask._data.dtype
    if kind.kind != "b" and kind != q.dtype and kind != "float32":
        names = [
            {"Long": "long int"}.get(n, n.lower()) for n in (from_numpy_dtype(d).old_name for d in (kind, q.dtype))
        ]
        raise ShapeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{names[0]} and  query.dtype: {names[1]} instead."
        )


def _repeated_heads(query: TensorState, tensor: TensorState):
    """Return key or value with each head repeated so that there are as many as the query has."""
    wanted, found = query._data.shape[-3], tensor._data.shape[-3]
    if wanted == found:
        return tensor
    if found == 0 or wanted % found:
        raise ShapeError(
            f"Number of heads in key and value must divide the number of heads in query; got {found} and {wanted}"
        )
    return tensor.repeat_interleave(wanted // found, -3)


@op(
    name="scaled_dot_product_attention",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    residuals=("probabilities",),
)
def attention(xp, query, key, value, attn_mask: Array | None, factors: Array | None, is_causal: bool, scale: float):
    """softmax(query · keyᵀ · scale + mask) · value; `factors` multiply the probabilities (dropout)."""
    check_stacks(query, key.mT)
    check_rows(key, value)
    wide_query, wide_key, wide_value = widened(query), widened(key), widened(value)
    scores = matmul(wide_query * wide_query.dtype.type(scale), wide_key.mT)
    if is_causal:
        attn_mask = softmax_kernels.causal_mask(*scores.shape[-2:])
    mask = attn_mask
    if mask is not None and mask.dtype.kind != "b":
        mask = rounded(mask, scores.dtype)
    probabilities = softmax_kernels.attention_weights(scores, mask)
    weights = probabilities if factors is None else probabilities * factors
    return rounded(matmul(weights, wide_value), query.dtype), probabilities


def check_rows(key: Array, value: Array) -> None:
    """Raise PyTorch's error unless there is one value for each key."""
    if key.shape[-2] != value.shape[-2]:
        count = math.prod(value.shape[:-2])
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {key.shape[-2]}] but got: "
            f"[{count}, {value.shape[-2]}].\n  There are {key.shape[-2]} keys and {value.shape[-2]} values; each key "
            "needs one value"
        )


@attention.derivative(
    "query",
    "key",
    "value",
    "attn_mask",
    formula="with p the probabilities, d = grad · valueᵀ, s = p · (d − Σ d · p): s · key · scale; sᵀ · query · scale; "
    "pᵀ · grad; s",
)
def attention_all(grad, query, key, value, attn_mask, factors, scale, probabilities, needs, xp):
    wide = widened(grad)
    g_query = g_key = g_value = g_mask = None
    if needs[2]:
        weights = probabilities if factors is None else probabilities * factors
        g_value = _fitting(matmul(weights.mT, wide), value)
    if needs[0] or needs[1] or needs[3]:
        grad_scores = matmul(wide, widened(value).mT)
        if factors is not None:
            grad_scores *= factors
        grad_scores = softmax_kernels.softmax_gradient(grad_scores, probabilities)
        factor = grad_scores.dtype.type(scale)
        if needs[0]:
            g_query = _fitting(matmul(grad_scores, widened(key)) * factor, query)
        if needs[1]:
            g_key = _fitting(matmul(grad_scores.mT, widened(query)) * factor, key)
        if needs[3]:
            g_mask = _fitting(grad_scores, attn_mask)
    return g_query, g_key, g_value, g_mask


def _fitting(grad: Array, like: Array):
    """Sum a gradient over broadcast dims, and round it to the dtype of its input."""
    return rounded(sum_to_shape(grad, like.shape) if grad.shape != like.shape else grad, like.dtype)


@attention.decomposition
def attention_decomposition(query, key, value, attn_mask, factors, is_causal, scale, probabilities):
    scores = (query * scale) @ key.mT
    if is_causal:
        attn_mask = wrap(softmax_kernels.causal_mask(*scores.shape[-2:]))
    if attn_mask is not None:
        boolean = attn_mask._data.dtype.kind == "b"
        scores = scores.masked_fill(~attn_mask, -math.inf) if boolean else scores + attn_mask
    blind = probabilities.sum(-1, keepdim=True) == 0
    found = softmax_along(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    return (found if factors is None else found * factors) @ value


@op(residuals=("logs",))
def ragged_attention(xp, qkv: Array, bias: Array | None, lengths: tuple, heads: int):
    """Attention of each token to those of its own sequence; sequences are packed end to end.

    Shapes: qkv (tokens, 3 · heads · dim), queries, keys and values side by side, bias (tokens,)
        -> (tokens, heads · dim)

    Args:
        bias: a number for each token that is added to every score with it as the key: log m weighs it by m.
        lengths: how many tokens each text has.
    """
    if qkv.ndim != 2 or qkv.shape[1] % (3 * heads) or sum(lengths) != len(qkv):
        raise ShapeError(
            f"qkv must be (tokens, 3 · heads · dim), got {list(qkv.shape)} for {sum(lengths)} tokens and {heads} heads"
        )
    if bias is not None and (bias.shape != qkv.shape[:1] or bias.dtype != qkv.dtype):
        raise ShapeError(
            f"bias must be ({len(qkv)},) of {qkv.dtype}, one number a token, got {list(bias.shape)} of {bias.dtype}"
        )
    wide = None if bias is None else widened(bias)
    out, logs = varlen_attention.ragged_attention(widened(qkv), wide, lengths, heads, _scale(qkv, heads))
    return rounded(out, qkv.dtype), logs


def _scale(qkv: Array, heads: int) -> float:
    return 1 / math.sqrt(qkv.shape[1] // (3 * heads) or math.inf)


@ragged_attention.derivative(
    "qkv",
    "bias",
    formula="with p the probabilities, d = grad · vᵀ, s = p · (d − Σ d · p): s · k · scale; sᵀ · q · scale; pᵀ · grad; "
    "Σ s over queries and heads",
)
def ragged_attention_all(grad, qkv, bias, lengths, heads, logs, needs, xp):
    scale, wide = _scale(qkv, heads), None if bias is None else widened(bias)
    found, of_bias = varlen_attention.ragged_attention_gradient(
        widened(grad), widened(qkv), wide, logs, lengths, heads, scale
    )
    return rounded(found, qkv.dtype), None if of_bias is None else rounded(of_bias.sum(1), qkv.dtype)


@ragged_attention.decomposition
def ragged_attention_decomposition(qkv: TensorState, bias: TensorState | None, lengths: tuple, heads: int, logs: Array):
    by_text = qkv.unflatten(1, (3, heads, -1)).permute(1, 2, 0, 3).split(lengths, 2)  # each (3, heads, n, dim)
    masks = [None] * len(by_text) if bias is None else [own.unsqueeze(0) for own in bias.split(lengths)]
    seen = [
        scaled_dot_product_attention(*part.unbind(0), mask).transpose(0, 1).flatten(1)
        for part, mask in zip(by_text, masks)
    ]
    return cat(seen)
