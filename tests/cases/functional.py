"""The functions of torch.nn.functional that are ops: linear, softmax, norms, tables, attention, distances."""

from case import Case, given, integers, normal, uniform

import backlight.nn.functional
from backlight.ops.nn.attention import ragged_attention

MASK = [[True, False, True, True], [False, False, False, False], [True, True, True, False]]


def attention(t, query, key, value, *mask, **options):
    return t.nn.functional.scaled_dot_product_attention(query, key, value, *mask, **options)


def of_texts(t, qkv, bias=None):
    """Attention with two heads in texts of 2, 0 and 3 tokens; PyTorch takes them one by one."""
    if t is backlight:
        return ragged_attention(qkv, bias, (2, 0, 3), 2)
    parts = qkv.unflatten(1, (3, 2, -1)).permute(1, 2, 0, 3).split((2, 0, 3), 2)
    masks = [None] * 3 if bias is None else [own.expand(len(own), -1) for own in bias.split((2, 0, 3))]
    seen = [attention(t, *part.unbind(0), attn_mask=mask) for part, mask in zip(parts, masks)]
    return t.cat([one.transpose(0, 1).flatten(1) for one in seen])


def heads(*lead):
    """Return query, key and value: 3 queries, 4 keys of 5 numbers, 2 numbers a value."""
    return [normal(*lead, 3, 5), normal(*lead, 4, 5), normal(*lead, 4, 2)]


CASES = [
    Case(
        "linear_with_bias",
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        [normal(2, 3), normal(4, 3), normal(4)],
    ),
    Case(
        "view_of_rows/linear of three dims",
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        [normal(2, 5, 3), normal(4, 3), normal(4)],
    ),
    Case(
        "linear_with_bias/vector",
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        [normal(3), normal(4, 3), normal(4)],
    ),
    Case(
        "linear_with_bias/matrix as bias",
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        [normal(2, 3), normal(4, 3), normal(2, 4)],
    ),
    Case("linear_without_bias", lambda t, x, w: t.nn.functional.linear(x, w), [normal(2, 3), normal(4, 3)]),
    Case("linear_without_bias/stack", lambda t, x, w: t.nn.functional.linear(x, w), [normal(2, 5, 3), normal(4, 3)]),
    Case("mv/linear with a vector as weight", lambda t, x, w: t.nn.functional.linear(x, w), [normal(2, 3), normal(3)]),
    Case(
        "einsum/bilinear",
        lambda t, x, y, w, b: t.nn.functional.bilinear(x, y, w, b),
        [normal(2, 3), normal(2, 4), normal(5, 3, 4), normal(5)],
    ),
    Case("softmax", lambda t, x: t.softmax(x, -1), [normal(3, 9)]),
    Case("softmax/first dim", lambda t, x: t.softmax(x, 0), [normal(3, 4)]),
    Case("softmax/large numbers", lambda t, x: t.softmax(x, 1), [normal(3, 9, scale=100)]),
    Case("_safe_softmax", lambda t, x: t._safe_softmax(x, -1), [normal(3, 9)]),
    Case("softmax/0-d", lambda t, x: t.softmax(x, 0), [normal()]),
    Case("softmax/empty", lambda t, x: t.softmax(x, 1), [normal(2, 0)]),
    Case("softmax/softmin", lambda t, x: t.nn.functional.softmin(x, 1), [normal(3, 4)]),
    Case("log_softmax", lambda t, x: t.log_softmax(x, -1), [normal(3, 9)]),
    Case("log_softmax/first dim", lambda t, x: t.log_softmax(x, 0), [normal(3, 4)]),
    Case("log_softmax/large numbers", lambda t, x: t.log_softmax(x, 1), [normal(3, 9, scale=100)]),
    Case("log_softmax/0-d", lambda t, x: t.log_softmax(x, -1), [normal()]),
    Case(
        "_softmax_backward_data",
        lambda t, g, x: t._softmax_backward_data(g, x, 1, g.dtype),
        [normal(3, 4), uniform(3, 4, low=0.1, high=0.4)],
    ),
    Case(
        "_log_softmax_backward_data",
        lambda t, g, x: t._log_softmax_backward_data(g, x, 1, g.dtype),
        [normal(3, 4), normal(3, 4)],
    ),
    Case(
        "layer_norm",
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (4,), w, b),
        [normal(2, 3, 4), normal(4), normal(4)],
    ),
    Case(
        "layer_norm/two dims",
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (3, 4), w, b, 1e-3),
        [normal(2, 3, 4), normal(3, 4), normal(3, 4)],
    ),
    Case("layer_norm/bare", lambda t, x: t.nn.functional.layer_norm(x, (9,)), [normal(2, 9)]),
    Case("layer_norm/no bias", lambda t, x, w: t.layer_norm(x, (4,), w), [normal(2, 4), normal(4)]),
    Case("group_norm", lambda t, x, w, b: t.group_norm(x, 2, w, b), [normal(2, 4, 3), normal(4), normal(4)]),
    Case("group_norm/bare", lambda t, x: t.nn.functional.group_norm(x, 2), [normal(2, 4, 3, 2)]),
    Case(
        "native_batch_norm",
        lambda t, x, w, b: t.nn.functional.batch_norm(x, None, None, w, b, training=True),
        [normal(3, 4, 2), normal(4), normal(4)],
        tolerance={"bfloat16": (2e-2, 5e-2)},
    ),
    Case(
        "native_batch_norm/running statistics",
        lambda t, x, m, v, w: t.nn.functional.batch_norm(x, m.detach(), v.detach(), w),
        [normal(3, 4), given([0.1, 0.2, -0.3, 0.0]), given([1.0, 0.5, 2.0, 1.5]), normal(4)],
    ),
    Case(
        "native_batch_norm/instance_norm",
        lambda t, x, w, b: t.nn.functional.instance_norm(x, weight=w, bias=b),
        [normal(2, 3, 5), normal(3), normal(3)],
        tolerance={"bfloat16": (2e-2, 5e-2)},
    ),
    Case("rms_norm/weight", lambda t, x, w: t.rms_norm(x, (4,), w), [normal(3, 4), normal(4)]),
    Case("true_divide/normalize", lambda t, x: t.nn.functional.normalize(x), [normal(3, 4)]),
    Case(
        "true_divide/local_response_norm",
        lambda t, x: t.nn.functional.local_response_norm(x, 3, 0.5),
        [normal(2, 5, 3)],
    ),
    Case("embedding", lambda t, i, w: t.nn.functional.embedding(i, w), [integers(3, 4), normal(5, 2)]),
    Case(
        "embedding_dense_backward/embedding twice", lambda t, i, w: t.embedding(w, i) ** 2, [integers(6), normal(5, 2)]
    ),
    Case(
        "weighted_rows/embedding, all frequent", lambda t, i, w: t.embedding(w, i), [integers(9, high=2), normal(5, 2)]
    ),
    *(
        Case(
            f"embedding/bag {mode}",
            lambda t, i, w, mode=mode: t.nn.functional.embedding_bag(i, w, mode=mode, padding_idx=2),
            [integers(3, 4), normal(5, 2)],
        )
        for mode in ("sum", "mean", "max")
    ),
    Case(
        "embedding/bag with offsets and weights",
        lambda t, i, o, w, s: t.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=s),
        [integers(7), given([0, 2, 2, 5]), normal(5, 2), normal(7)],
    ),
    Case("ragged_attention", of_texts, [normal(5, 12)]),
    Case("ragged_attention_with_bias", of_texts, [normal(5, 12), normal(5)]),
    Case("scaled_dot_product_attention", attention, heads(2, 2)),
    Case("scaled_dot_product_attention/no batch", attention, heads()),
    Case(
        "scaled_dot_product_attention/causal",
        lambda t, *a: attention(t, *a, is_causal=True, scale=0.3),
        heads(2),
    ),
    Case("scaled_dot_product_attention/booleans as mask", attention, [*heads(2, 2), given(MASK)]),
    Case("scaled_dot_product_attention/numbers as mask", attention, [*heads(2, 2), normal(2, 1, 3, 4)]),
    Case(
        "scaled_dot_product_attention/large numbers",
        lambda t, q, k, v: attention(t, q * 50, k, v),
        heads(2),
        dtypes=("float64", "float32"),
    ),
    Case(
        "scaled_dot_product_attention/shared heads",
        lambda t, q, k, v: attention(t, q, k, v, enable_gqa=True),
        [normal(2, 4, 3, 5), normal(2, 2, 4, 5), normal(2, 2, 4, 2)],
    ),
    Case("sum/cosine_similarity", lambda t, a, b: t.cosine_similarity(a, b, dim=-1), [normal(3, 4), normal(1, 4)]),
    Case(
        "linalg_vector_norm/pairwise_distance",
        lambda t, a, b: t.nn.functional.pairwise_distance(a, b, 3.0, keepdim=True),
        [normal(3, 4), normal(3, 4)],
    ),
    Case(
        "linalg_vector_norm/pdist", lambda t, a: t.nn.functional.pdist(a), [normal(4, 3)], dtypes=("float64", "float32")
    ),
]
