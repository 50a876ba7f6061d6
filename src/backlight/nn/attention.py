"""Multi-head attention, as a function of its weights."""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from backlight.dispatch.dispatcher import public_function
from backlight.engine.tensor_state import wrap
from backlight.errors import ShapeError
from backlight.ops.nn.attention import scaled_dot_product_attention
from backlight.ops.nn.linear import linear
from backlight.ops.nn.softmax import softmax
from backlight.ops.random.dropout import dropout
from backlight.ops.shape.joining import cat
from backlight.ops.shape.padding import pad
from backlight.tensor.factories import zeros
from backlight.tensor.tensor import Tensor

__all__ = ["multi_head_attention_forward"]


@dataclass(frozen=True)
class Sizes:
    """How many queries, batch elements and heads there are."""

    queries: int
    batch: int
    heads: int

    @property
    def rows(self) -> int:
        """The number of heads over the full batch."""
        return self.batch * self.heads


@public_function
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Project queries, keys and values, compute attention per head, concatenate the heads and project them.

    Shapes: query (queries, batch, dim), key (keys, batch, kdim), value (keys, batch, vdim), or all without batch
    -> output as query; weights (batch, queries, keys), or (batch, heads, queries, keys) if not averaged

    Args:
        embed_dim_to_check: the dim that the query must have.
        in_proj_weight, in_proj_bias: the projections of query, key and value in one.
        bias_k, bias_v: one more key and value for every sequence.
        add_zero_attn: add a key and a value of zeros.
        key_padding_mask: (batch, keys); True, or a number that is added to the scores, for keys to ignore.
        need_weights: return the attention weights too, which takes a slower path.
        attn_mask: (queries, keys) or (batch · heads, queries, keys); True for masked positions, or numbers.
        use_separate_proj_weight: take `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
        static_k, static_v: (batch · heads, keys, dim / heads), instead of projected ones.
        average_attn_weights: whether the weights returned are the mean over heads.
        is_causal: says that `attn_mask` is the causal one.

    Raises:
        RuntimeError, AssertionError: shapes do not match.

    Source: Ashish Vaswani et al.: Attention Is All You Need, 2017, arXiv:1706.03762
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    sizes = Sizes(query.shape[0], query.shape[1], num_heads)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    key_padding_mask = additive_mask(key_padding_mask, "key_padding_mask", query, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise ShapeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    hinted = is_causal and key_padding_mask is None and not need_weights  # the hint replaces the mask
    attn_mask = None if hinted else additive_mask(attn_mask, "attn_mask", query)
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (linear(*each) for each in zip((query, key, value), weights, biases))
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    mask = _cubic(attn_mask, sizes, key.shape[0])
    more = int(add_zero_attn) + int(bias_k is not None)
    biased = bias_k is not None and bias_v is not None
    _check_static(static_k, "key" if biased else None, sizes, q.shape[-1], "static_k")
    _check_static(static_v, "value" if biased else None, sizes, q.shape[-1], "static_v")
    if bias_k is not None:
        k, v = cat([k, bias_k.expand(1, sizes.batch, -1)]), cat([v, bias_v.expand(1, sizes.batch, -1)])
    q = _by_heads(q, sizes)
    k = _by_heads(k, sizes) if static_k is None else static_k
    v = _by_heads(v, sizes) if static_v is None else static_v
    if add_zero_attn:
        nothing = zeros((sizes.rows, 1, q.shape[2]), dtype=q.dtype)
        k, v = cat([k, nothing], 1), cat([v, nothing], 1)
    mask = _merged(mask, key_padding_mask, sizes, more, k.shape[1])
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        found, weights = _weighed(q, k, v, mask, dropout_p)
        weights = weights.reshape((sizes.batch, num_heads, sizes.queries, k.shape[1]))
        weights = weights.mean(dim=1) if average_attn_weights else weights
    else:
        found, weights = _attended(q, k, v, mask, dropout_p, hinted, sizes), None
    joined = found.transpose(0, 1).reshape((sizes.queries, sizes.batch, embed_dim_to_check))
    out = linear(joined, out_proj_weight, out_proj_bias)
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


# --- the parts --------------------------------------------------------------------------------------------------------


def _check_static(static: Tensor | None, biased: str | None, sizes: Sizes, width: int, name: str) -> None:
    """Raise AssertionError unless given keys or values have the shape of projected ones, and no bias is added to them.

    Args:
        biased: "key" or "value" if there is a bias.
    """
    if static is None:
        return
    if biased is not None:
        raise AssertionError(f"bias cannot be added to static {biased}.")
    for dim, wanted in ((0, sizes.rows), (2, width // sizes.heads)):
        if static.shape[dim] != wanted:
            raise AssertionError(f"expecting {name}.size({dim}) of {wanted}, but got {static.shape[dim]}")


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Project query, key and value; with one product if they are the same tensor."""
    if query is key and key is value:
        return linear(query, weight, bias).chunk(3, -1)
    dim = query.shape[-1]
    if key is value:
        w_q, w_kv = weight.split([dim, 2 * dim])
        b_q, b_kv = (None, None) if bias is None else bias.split([dim, 2 * dim])
        return [linear(query, w_q, b_q), *linear(key, w_kv, b_kv).chunk(2, -1)]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(*each) for each in zip((query, key, value), weight.chunk(3), biases)]


def _by_heads(tensor: Tensor, sizes: Sizes) -> Tensor:
    """Return (length, batch, dim) as (batch · heads, length, dim / heads)."""
    return tensor.reshape((tensor.shape[0], sizes.rows, tensor.shape[2] // sizes.heads)).transpose(0, 1)


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Tensor, Tensor]:
    """Return the attention output and its weights, by unfused ops."""
    scores = (q * math.sqrt(1 / q.shape[2])) @ k.transpose(1, 2)
    weights = softmax(scores if mask is None else scores + mask, -1)
    weights = dropout(weights, dropout_p, True) if dropout_p > 0 else weights
    return weights @ v, weights


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, causal: bool, sizes: Sizes):
    """Return the attention output by the fused op."""
    split = (sizes.batch, sizes.heads)
    q, k, v = (part.unflatten(0, split) for part in (q, k, v))
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.unflatten(0, split)
    return scaled_dot_product_attention(q, k, v, mask, dropout_p, causal).flatten(0, 1)


# --- masks ------------------------------------------------------------------------------------------------------------


def additive_mask(
    mask: Tensor | None, name: str, like: Tensor, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """Return a mask as numbers to add to scores: −inf where a boolean one is True.

    Raises:
        AssertionError: its dtype is neither bool nor floating point.
    """
    if mask is None:
        return None
    boolean = mask._data.dtype.kind == "b"
    if not (boolean or mask.is_floating_point()):
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if not boolean:
        return mask
    kind = like._data.dtype
    return wrap(np.where(mask._data, kind.type(-np.inf), kind.type(0)))


def _cubic(mask: Tensor | None, sizes: Sizes, keys: int) -> Tensor | None:
    """Return an attention mask with a leading dim for batch · heads."""
    if mask is None:
        return None
    if mask.ndim == 2:
        if tuple(mask.shape) != (sizes.queries, keys):
            raise ShapeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(sizes.queries, keys)}.")
        return mask.unsqueeze(0)
    if mask.ndim != 3:
        raise ShapeError(f"attn_mask's dimension {mask.ndim} is not supported")
    if tuple(mask.shape) != (sizes.rows, sizes.queries, keys):
        raise ShapeError(
            f"The shape of the 3D attn_mask is {mask.shape}, but should be {(sizes.rows, sizes.queries, keys)}."
        )
    return mask


def _merged(mask: Tensor | None, padding: Tensor | None, sizes: Sizes, more: int, keys: int) -> Tensor | None:
    """Merge both masks, extended by the added keys, which are never masked; `keys` is how many there are with them."""
    if more:
        mask, padding = (None if each is None else pad(each, (0, more)) for each in (mask, padding))
    if padding is None:
        return mask
    _check_padding(padding, sizes, keys)
    rows = padding.reshape((sizes.batch, 1, 1, padding.shape[1])).expand(-1, sizes.heads, -1, -1).flatten(0, 1)
    return rows if mask is None else mask + rows


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_padding(padding: Tensor, sizes: Sizes, keys: int) -> None:
    for dim, wanted in enumerate((sizes.batch, keys)):
        if padding.shape[dim] != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {padding.shape[dim]}")


def _is_batched(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Tell whether there is a batch dim."""
    dims = query.ndim
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    noun = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.ndim != dims or value.ndim != dims:
        raise AssertionError(
            f"For {noun} `query`, expected `key` and `value` to be {dims}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != dims - 1:
        raise AssertionError(
            f"For {noun} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(
            f"For {noun} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor "
            "instead"
        )
    if dims == 2 and attn_mask is not None and attn_mask.ndim == 3:
        wanted = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return dims == 3


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, dim: int, heads: int, separate: bool) -> None:
    found = query.shape[2]
    if found != dim:
        raise AssertionError(f"was expecting embedding dimension of {dim}, but got {found}")
    if found % heads:
        raise AssertionError(f"embed_dim {found} not divisible by num_heads {heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
