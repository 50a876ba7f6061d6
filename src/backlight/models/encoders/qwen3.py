"""Qwen3: a decoder whose tokens look back only; as a reranker it scores by what it would answer, yes or no.

Source: Yang et al., Qwen3 Technical Report, 2025, arXiv:2505.09388; Zhang et al., Qwen3 Embedding: Advancing Text
Embedding and Reranking Through Foundation Models, 2025, arXiv:2506.05176.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from backlight.errors import InputError
from backlight.formats.schema import with_checked_fields
from backlight.models.checkpoint import Weights, object_in
from backlight.models.encoders.encoder import (
    Encoder,
    EncoderConfig,
    Epsilon,
    Layers,
    Shapes,
    Size,
    Trace,
    Weighted,
    check_activation,
    check_positions,
)
from backlight.models.encoders.rotary import Rotation, theta_of
from backlight.models.tokens import Batch
from backlight.ops.nn.attention import scaled_dot_product_attention
from backlight.ops.nn.normalization import rms_norm
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

TOKENS_READ = 8192  # at most, by default: what the reranker's authors use


@dataclass(frozen=True)
class Qwen3Config(EncoderConfig):
    """The sizes of a Qwen3, as `config.json` names them."""

    family: ClassVar[str] = "Qwen3"
    activation_of: ClassVar[tuple[str, str]] = ("hidden_act", "rms_norm_eps")

    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    intermediate_size: Size
    num_key_value_heads: Size
    head_dim: Size
    max_position_embeddings: Size = 32768
    hidden_act: str = "silu"
    rms_norm_eps: Epsilon = 1e-6
    attention_bias: bool = False
    tie_word_embeddings: bool = False
    rope_theta: float = 10_000.0
    windows: tuple[int | None, ...] = ()  # for each layer how far back a token looks; None is as far as the text goes

    @classmethod
    def of(cls, settings: Mapping) -> Self:
        """Return the sizes that a config.json says, and how far back the tokens of each layer look."""
        config = super().of({name: value for name, value in settings.items() if name != "windows"})  # which is ours
        rope = object_in(settings, "rope_parameters") or object_in(settings, "rope_scaling")
        sliding = {one.name: settings[one.name] for one in fields(_Sliding) if settings.get(one.name) is not None}
        windows = _windows(with_checked_fields(_Sliding, sliding), config.num_hidden_layers)
        return replace(config, rope_theta=theta_of(rope, config.rope_theta), windows=windows)

    @property
    def max_tokens(self) -> int:
        """How many tokens the model reads by default."""
        return min(self.max_position_embeddings, TOKENS_READ)

    def _check(self, settings: Mapping) -> None:
        check_activation(self.hidden_act)
        heads, groups = self.num_attention_heads, self.num_key_value_heads
        if heads % groups:
            raise InputError(f"num_attention_heads must be a multiple of num_key_value_heads, got {heads} and {groups}")
        if self.head_dim % 2:
            raise InputError(f"head_dim must be even, got {self.head_dim}: values are turned in pairs")


@dataclass(frozen=True)
class _Sliding:
    """What config.json says of layers whose tokens look back over a window only."""

    use_sliding_window: bool = False
    sliding_window: int | None = None
    max_window_layers: int = 28
    layer_types: tuple[str, ...] = ()


def _windows(said: _Sliding, layers: int) -> tuple[int | None, ...]:
    window = said.sliding_window if said.use_sliding_window else None
    first = layers if window is None else said.max_window_layers
    kinds = said.layer_types or tuple(_SLIDING if number >= first else _FULL for number in range(layers))
    if len(kinds) != layers or not {*kinds} <= {_SLIDING, _FULL}:
        raise InputError(f"layer_types must say {_FULL} or {_SLIDING} for each of {layers} layers, got {list(kinds)}")
    if _SLIDING in kinds and (window is None or window < 1):
        raise InputError(f"sliding_window must be 1 or more where layers slide, and be in use, got {window}")
    return tuple(window if kind == _SLIDING else None for kind in kinds)


_SLIDING, _FULL = "sliding_attention", "full_attention"


class Qwen3(Encoder):
    """Qwen3's decoder with frozen weights (arguments as `Encoder`)."""

    words = "embed_tokens.weight"

    @staticmethod
    def shapes_of(config: Qwen3Config) -> Shapes:
        """Return the name and shape of each weight."""
        size, inner, dim = config.hidden_size, config.intermediate_size, config.head_dim
        queries, keys = config.num_attention_heads * dim, config.num_key_value_heads * dim
        linears = {"q_proj": (queries, size), "k_proj": (keys, size), "v_proj": (keys, size), "o_proj": (size, queries)}
        shapes = {Qwen3.words: (config.vocab_size, size), "norm.weight": (size,)}
        for layer in (f"layers.{number}" for number in range(config.num_hidden_layers)):
            for name, shape in linears.items():
                shapes[f"{layer}.self_attn.{name}.weight"] = shape
                if config.attention_bias:
                    shapes[f"{layer}.self_attn.{name}.bias"] = shape[:1]
            shapes |= {f"{layer}.mlp.{name}.weight": (inner, size) for name in ("gate_proj", "up_proj")}
            shapes[f"{layer}.mlp.down_proj.weight"] = (size, inner)
            shapes |= {f"{layer}.self_attn.{name}.weight": (dim,) for name in ("q_norm", "k_norm")}
            shapes |= {f"{layer}.{name}.weight": (size,) for name in ("input_layernorm", "post_attention_layernorm")}
        return shapes

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        check_positions(batch, self.config.max_position_embeddings)
        return words

    def _around(self, batch: Batch) -> Rotation:
        return Rotation.of(batch.positions, self.config.head_dim, self.config.rope_theta, self._dtype)

    def _attention(self, hidden: Tensor, number: int, batch: Batch, turn: Rotation, trace: Trace | None) -> Tensor:
        """Let each token look back over its text; (tokens, hidden) -> (tokens, heads · dim)."""
        window, parts = self.config.windows[number], batch.parts(batch.positions)
        name, dim = f"layers.{number}.self_attn", self.config.head_dim
        normal = self._normalised(hidden, f"layers.{number}.input_layernorm")
        query, key, value = (
            self._linear(normal, f"{name}.{part}_proj").unflatten(1, (-1, dim)) for part in "qkv"
        )  # (tokens, heads, dim), fewer heads for key and value
        query, key = turn(self._normalised(query, f"{name}.q_norm")), turn(self._normalised(key, f"{name}.k_norm"))
        if trace is not None:
            groups = self.config.num_attention_heads // self.config.num_key_value_heads
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
            seeing = [_causal_mask(part, window) for part in parts]
            biases = [from_numpy(np.where(part, 0, -np.inf).astype(self._dtype)) for part in seeing]
            return trace.attend(query, key, value, batch.lengths, dim**-0.5, biases)
        by_text = zip(*(part.transpose(0, 1).split(batch.lengths, 1) for part in (query, key, value)))
        seen = [_causal_attention(*text, positions, window) for text, positions in zip(by_text, parts)]
        return cat([part.transpose(0, 1).flatten(1) for part in seen])

    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        name = f"layers.{number}"
        hidden = hidden + self._linear(seen, f"{name}.self_attn.o_proj")
        normal = self._normalised(hidden, f"{name}.post_attention_layernorm")
        gate = self._activation(self._linear(normal, f"{name}.mlp.gate_proj"))  # (tokens, intermediate)
        return hidden + self._linear(gate * self._linear(normal, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj")

    def finish(self, states: Tensor) -> Tensor:
        """Normalise states as those of the last layer are; (tokens, hidden) -> the same."""
        return self._normalised(states, "norm")

    def _normalised(self, x: Tensor, name: str) -> Tensor:
        return rms_norm(x, x.shape[-1:], self._weights[f"{name}.weight"], self._eps)


def _causal_attention(query: Tensor, key: Tensor, value: Tensor, positions: np.ndarray, window: int | None) -> Tensor:
    """Return what the tokens of one text see; (heads, tokens, dim) -> the same."""
    if window is None or np.ptp(positions) < window:
        return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    seen = from_numpy(_causal_mask(positions, window))
    return scaled_dot_product_attention(query, key, value, seen, enable_gqa=True)


def _causal_mask(positions: np.ndarray, window: int | None) -> np.ndarray:
    """Return whether each token of a text sees each other one, (queries, keys)."""
    back = positions[:, None] - positions
    return (back >= 0) & (back < (math.inf if window is None else window))


class Qwen3Head(Weighted):
    """Reads the last token: how much more likely `yes` is than `no` as the next one, or what a classifier says.

    With Qwen3ForCausalLM's weights there is one logit a text, logit(yes) − logit(no): its sigmoid is the probability of
    `yes` where only these two can follow. With Qwen3ForSequenceClassification's there is one a label.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name.
        labels: how many logits a text gets.
        answers: the ids of the tokens `yes` and `no`; None for a classifier.

    Raises:
        InputError: the weights are missing or misshapen, or an answer is not in the vocabulary.
    """

    reads = "lasttoken"

    def __init__(
        self,
        config: Qwen3Config,
        weights: Mapping[str, np.ndarray],
        labels: int = 1,
        answers: tuple[int, int] | None = None,
    ):
        taken, size = Weights(weights, "Qwen3 with a head", ("model.",)), config.hidden_size
        if answers is None:
            super().__init__(taken.take_all({"score.weight": (labels, size)}))
            return
        if labels != 1 or not all(0 <= answer < config.vocab_size for answer in answers):
            raise InputError(f"yes and no must be among the {config.vocab_size} tokens of one logit, got {answers}")
        name = Qwen3.words if config.tie_word_embeddings else "lm_head.weight"
        yes, no = taken.take(name, config.vocab_size, size)[list(answers)]
        super().__init__({"score.weight": (yes - no)[None]})

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits; (texts, hidden) -> (texts, labels)."""
        return self._linear(states, "score")
