"""A mask together with `is_causal`, which PyTorch's fused attention takes, and masks that do not fit."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, 4, 8, requires_grad=True) for _ in range(3))
mask = torch.randn(4, 4)
for given in (mask, mask > 0, mask.masked_fill(mask > 1, -torch.inf), torch.zeros(1, 2, 4, 4)):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=given, is_causal=True)
    grads = torch.autograd.grad(out.square().sum(), [q, k, v])
    print(given.dtype, round(out.sum().item(), 4), [round(grad.norm().item(), 3) for grad in grads])
short = F.scaled_dot_product_attention(q[:, :, :2], k, v, attn_mask=mask[:2], is_causal=True)
print(short.shape, round(short.sum().item(), 4))
for call in (
    lambda: F.scaled_dot_product_attention(q[0], k[0], v[0], attn_mask=mask, is_causal=True),
    lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True, dropout_p=0.1),
    lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, :3]),
    lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:3] > 0),
    lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(3, 1, 4, 4)),
    lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.zeros(2, 3, 1, 4, 4)),
):
    try:
        call()
    except RuntimeError as problem:
        print(str(problem).partition(";")[0])
