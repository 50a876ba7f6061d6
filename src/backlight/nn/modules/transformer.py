"""Transformers: encoder, decoder, and both together."""

import copy
from collections.abc import Callable

import numpy as np

from backlight.dtypes import dtype
from backlight.errors import ShapeError
from backlight.nn import functional as F
from backlight.nn import init
from backlight.nn.attention import additive_mask
from backlight.nn.internal.attention import MultiheadAttention
from backlight.nn.modules.container import ModuleList
from backlight.nn.modules.dropout import Dropout
from backlight.nn.modules.linear import Linear
from backlight.nn.modules.module import Module
from backlight.nn.modules.normalization import LayerNorm
from backlight.tensor.factories import full
from backlight.tensor.tensor import Tensor
from backlight.types import Device

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class TransformerLayer(Module):
    """Base class of encoder and decoder layers: self-attention and two linear layers, each added to its input.

    Args:
        d_model: the size of inputs and outputs.
        nhead: the number of attention heads.
        dim_feedforward: the size between the two linear layers.
        dropout: the dropout probability of each part's output and of attention weights, in training.
        activation: "relu", "gelu" or a function, between the two linear layers.
        layer_norm_eps: added to variances for stability.
        batch_first: whether the batch is the first dim.
        norm_first: whether inputs are normalised before each part, instead of sums after it.
        bias: whether linear layers and norms have biases.
    """

    crossed = False  # whether the layer attends to a memory too
    parts = 2

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made)
        if self.crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        for part in range(1, self.parts + 1):
            setattr(self, f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, **made))
        for part in range(1, self.parts + 1):
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _activation(activation) if isinstance(activation, str) else activation

    def _added(self, x: Tensor, norm: Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Add what a part makes of its input to the input; the norm stands before the part or after the sum."""
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def _attend_to_self(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
        return self.dropout1(
            self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal)[0]
        )

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    if name not in ("relu", "gelu"):
        raise ShapeError(f"activation should be relu/gelu, not {name}")
    return F.relu if name == "relu" else F.gelu


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and two linear layers; `TransformerLayer` has the options.

    Shapes: src (time, batch, d_model), (batch, time, d_model) with `batch_first`, or (time, d_model) -> as src
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the output; see `multi_head_attention_forward` for the masks."""
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask")
        mask = additive_mask(src_mask, "src_mask", src)
        x = self._added(src, self.norm1, lambda x: self._attend_to_self(x, mask, padding, is_causal))
        return self._added(x, self.norm2, lambda x: self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to a memory, and two linear layers; `TransformerLayer` has the options.

    Shapes: tgt (time, batch, d_model), (batch, time, d_model) with `batch_first`, or (time, d_model) -> as tgt
    """

    crossed = True
    parts = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the output; see `multi_head_attention_forward` for the masks."""

        def attend_to_memory(x: Tensor) -> Tensor:
            found, _ = self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                need_weights=False,
                is_causal=memory_is_causal,
            )
            return self.dropout2(found)

        x = self._added(
            tgt, self.norm1, lambda x: self._attend_to_self(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        )
        x = self._added(x, self.norm2, attend_to_memory)
        return self._added(x, self.norm3, lambda x: self.dropout3(self._feed_forward(x)))


# --- stacks -----------------------------------------------------------------------------------------------------------


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: the layer to copy, with its current values.
        norm: a layer for the output.
        enable_nested_tensor, mask_check: accepted; there are no nested tensors.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src, mask, "mask")
        mask = additive_mask(mask, "mask", src)
        causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, all attending to the same memory.

    Args:
        decoder_layer: the layer to copy, with its current values.
        norm: a layer for the output.
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


def _clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _length(tensor: Tensor, batch_first: bool) -> int:
    return tensor.shape[1 if batch_first and tensor.ndim == 3 else 0]


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int) -> bool:
    """Return whether a mask is the causal one; a value given by the caller is used as it is."""
    if is_causal is not None or mask is None:
        return is_causal is True
    wanted = np.triu(np.full((size, size), -np.inf, np.float32), 1)
    return mask._data.shape == wanted.shape and bool((mask._data == wanted).all())


# --- both -------------------------------------------------------------------------------------------------------------


class Transformer(Module):
    """An encoder whose output is the memory of a decoder; `TransformerLayer` has the other options.

    Shapes: src (sources, batch, d_model), tgt (targets, batch, d_model), with `batch_first` the batch first, or both
    without batch -> as tgt

    Args:
        custom_encoder, custom_decoder: modules to use instead.

    Source: Ashish Vaswani et al.: Attention Is All You Need, 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: dtype | None = None,
    ):
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*options, device=device, dtype=dtype)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options, device=device, dtype=dtype)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw new values for all matrices."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output.

        Raises:
            RuntimeError: batches or sizes of src and tgt differ.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: dtype | None = None) -> Tensor:
        """Return the causal mask: −inf above the diagonal, else 0."""
        return full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
