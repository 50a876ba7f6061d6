"""Multi-head attention."""

from backlight.dtypes import dtype
from backlight.errors import ValueProblem
from backlight.nn import init
from backlight.nn.attention import multi_head_attention_forward
from backlight.nn.modules.linear import Linear
from backlight.nn.modules.module import Module
from backlight.nn.parameter import Parameter
from backlight.tensor.factories import empty
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer under the name that PyTorch prints here."""


class MultiheadAttention(Module):
    """Multi-head attention: each head attends to keys and values; the heads are concatenated and projected.

    Args:
        embed_dim: the size of queries and outputs; each head has size embed_dim / num_heads.
        dropout: the dropout probability of attention weights in training.
        bias: whether the projections have biases.
        add_bias_kv: whether to add one trained key and value to every sequence.
        add_zero_attn: whether to add one key and value of zeros.
        kdim, vdim: the sizes of keys and values; embed_dim by default.
        batch_first: whether the batch is the first dim.

    Raises:
        ValueError: a size is not above 0.
        AssertionError: embed_dim is not a multiple of num_heads.

    Source: Ashish Vaswani et al.: Attention Is All You Need, 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueProblem(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        for name, shape in self._shapes(bias, add_bias_kv).items():
            values = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, values)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _shapes(self, bias: bool, add_bias_kv: bool) -> dict[str, tuple[int, ...] | None]:
        """Return the shapes of the parameters by name, None for those that are not there."""
        dim, separate = self.embed_dim, not self._qkv_same_embed_dim
        more = (1, 1, dim) if add_bias_kv else None
        return {
            "q_proj_weight": (dim, dim) if separate else None,
            "k_proj_weight": (dim, self.kdim) if separate else None,
            "v_proj_weight": (dim, self.vdim) if separate else None,
            "in_proj_weight": None if separate else (3 * dim, dim),
            "in_proj_bias": (3 * dim,) if bias else None,
            "bias_k": more,
            "bias_v": more,
        }

    def _reset_parameters(self) -> None:
        """Draw new values; biases start as zeros."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for more in (self.bias_k, self.bias_v):
            if more is not None:
                init.xavier_normal_(more)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return outputs, and attention weights or None.

        See `multi_head_attention_forward` for the arguments.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            query, key, value = _transposed(query, key, value)
        out, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if turned else out), weights


def _transposed(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return all with time first; tensors that are the same stay the same, so that one product projects them."""
    turned = {id(tensor): tensor.transpose(1, 0) for tensor in (query, key, value)}
    return turned[id(query)], turned[id(key)], turned[id(value)]
