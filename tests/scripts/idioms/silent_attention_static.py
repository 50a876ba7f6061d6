"""`multi_head_attention_forward` with static keys and values, biases, zero attention and masks."""

import torch
import torch.nn.functional as F
from said import error
from torch import nn

torch.manual_seed(0)
length, batch, width, heads = 3, 2, 4, 2
q, k, v = (torch.randn(length, batch, width) for _ in range(3))
layer = nn.MultiheadAttention(width, heads)
common = (width, heads, layer.in_proj_weight, layer.in_proj_bias)


def attempt(name, **options):
    base = dict(
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=layer.out_proj.weight,
        out_proj_bias=layer.out_proj.bias,
    )
    base.update(options)
    try:
        out, weights = F.multi_head_attention_forward(q, k, v, *common, **base)
        print(
            name,
            [round(x, 4) for x in out.flatten().tolist()[:4]],
            None if weights is None else (tuple(weights.shape), round(weights.sum().item(), 3)),
        )
    except Exception as problem:
        print(name, error(problem))


static = torch.randn(batch * heads, 5, width // heads)
attempt("plain")
attempt("static k", static_k=torch.randn(batch * heads, length, width // heads))
attempt("static both", static_k=static, static_v=static)
attempt("static wrong", static_k=static[:1], static_v=static)
attempt("static wrong dim", static_k=static[..., :1])
attempt("zero", add_zero_attn=True)
attempt("bias", bias_k=torch.ones(1, 1, width), bias_v=torch.ones(1, 1, width))
attempt("bias and static", bias_k=torch.ones(1, 1, width), bias_v=torch.ones(1, 1, width), static_k=static)
attempt("padding", key_padding_mask=torch.tensor([[False, True, False], [False, False, True]]))
attempt("mask", attn_mask=torch.ones(length, length).triu(1).bool())
attempt(
    "both",
    attn_mask=torch.zeros(length, length),
    key_padding_mask=torch.tensor([[False, True, False], [False, False, True]]),
)
attempt("3-d mask", attn_mask=torch.zeros(batch * heads, length, length))
attempt("wrong mask", attn_mask=torch.zeros(2, 2))
attempt("mask with zero", attn_mask=torch.zeros(length, length), add_zero_attn=True)
attempt(
    "mask, bias, zero",
    attn_mask=torch.zeros(length, length),
    add_zero_attn=True,
    bias_k=torch.ones(1, 1, width),
    bias_v=torch.ones(1, 1, width),
    key_padding_mask=torch.zeros(batch, length).bool(),
)
attempt("static and mask", static_k=static, static_v=static, attn_mask=torch.zeros(length, 5))
attempt("static and padding", static_k=static, static_v=static, key_padding_mask=torch.zeros(batch, 5).bool())
attempt("no weights", need_weights=False)
attempt("each head", average_attn_weights=False)
attempt("causal without mask", is_causal=True)
attempt("causal", is_causal=True, attn_mask=torch.ones(length, length).triu(1).bool(), need_weights=False)
attempt(
    "separate",
    use_separate_proj_weight=True,
    q_proj_weight=torch.eye(4),
    k_proj_weight=torch.eye(4),
    v_proj_weight=torch.eye(4),
)
