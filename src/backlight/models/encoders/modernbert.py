"""ModernBERT: norms before each step, rotary positions, gated layers, and a window of nearby tokens in most layers.

NOTE [Nearby tokens]
A token looks at the tokens of its text that are up to half a window away, by position. A text is cut into bands: some
queries in a row, and the keys that one of them may look at. So work and memory grow with the length of a text and not
with its square. Where each token may look at all of its text, there are no bands, and attention is the ordinary one.

Source: Warner and others, Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient,
and Long Context Finetuning and Inference, 2024, arXiv:2412.13663.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from backlight.errors import InputError
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
    check_heads,
)
from backlight.models.encoders.rotary import Rotation, theta_of
from backlight.models.tokens import Batch
from backlight.ops.nn.attention import ragged_attention, scaled_dot_product_attention
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

LEAST_QUERIES = 16  # of a band: less would be all overhead


@dataclass(frozen=True, eq=False)
class Band:
    """Some queries, and the keys that one of them may look at."""

    queries: slice  # of the row of tokens
    keys: slice
    near: Tensor  # (queries, keys), whether the query may look at the key


def bands_of(batch: Batch, window: int) -> list[Band]:
    """Return the bands of all texts (see NOTE [Nearby tokens]); none, if each token may look at all of its text.

    Args:
        window: how many positions a token looks at, to both sides together.
    """
    parts = batch.parts(batch.positions)
    if all(part[-1] - part[0] <= window // 2 for part in parts):
        return []
    return [band for start, part in zip(batch.starts, parts) for band in _bands_of_text(start, part, window)]


def _bands_of_text(start: int, positions: np.ndarray, window: int) -> Iterator[Band]:
    half, width = window // 2, max(window, LEAST_QUERIES)
    for first in range(0, len(positions), width):
        asking = positions[first : first + width]
        low = int(np.searchsorted(positions, asking[0] - half))
        high = int(np.searchsorted(positions, asking[-1] + half, "right"))
        near = from_numpy(_near(asking, positions[low:high], window))
        yield Band(slice(start + first, start + first + len(asking)), slice(start + low, start + high), near)


def _near(queries: np.ndarray, keys: np.ndarray, window: int) -> np.ndarray:
    """Return whether each query may look at each key, by their positions; (queries, keys)."""
    return np.abs(queries[:, None] - keys) <= window // 2


def banded_attention(qkv: Tensor, bands: Sequence[Band]) -> Tensor:
    """Return what each token saw within its band.

    Shapes: qkv (tokens, 3, heads, dim) -> (tokens, heads · dim)
    """
    query, key, value = qkv.permute(1, 2, 0, 3).unbind(0)  # each (heads, tokens, dim)
    seen = [
        scaled_dot_product_attention(query[:, band.queries], key[:, band.keys], value[:, band.keys], band.near)
        for band in bands
    ]
    return cat(seen, 1).transpose(0, 1).flatten(1)


def banded_mask(batch: Batch, window: int, dtype: np.dtype) -> list[Tensor]:
    """Return for each text what keeps its tokens from looking farther, if it is added to scores: 0 or −∞.

    Shapes: -> texts × (1, queries, keys)
    """
    near = [_near(part, part, window) for part in batch.parts(batch.positions)]
    return [from_numpy(np.where(one, 0, -np.inf).astype(dtype)).unsqueeze(0) for one in near]


GLOBAL, LOCAL = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """The sizes of a ModernBERT, as `config.json` names them."""

    family: ClassVar[str] = "ModernBERT"
    activation_of: ClassVar[tuple[str, str]] = ("hidden_activation", "norm_eps")

    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    intermediate_size: Size
    max_position_embeddings: Size = 8192
    local_attention: Size = 128  # positions to both sides together
    global_attn_every_n_layers: Size = 3
    hidden_activation: str = "gelu"
    norm_eps: Epsilon = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    classifier_pooling: str = "cls"
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0
    layer_types: tuple[str, ...] = ()

    @property
    def head_size(self) -> int:
        """How long the queries, keys and values of a head are."""
        return self.hidden_size // self.num_attention_heads

    @property
    def thetas(self) -> dict[str, float]:
        """The base of the rotation's angles for each kind of layer."""
        return {GLOBAL: self.global_rope_theta, LOCAL: self.local_rope_theta}

    @classmethod
    def of(cls, settings: Mapping) -> Self:
        """Return the sizes that a config.json says, in the form of transformers 4 or 5."""
        plain = super().of(settings)
        return replace(plain, **_thetas_of(settings, plain), layer_types=_layer_types_of(plain))

    def _check(self, settings: Mapping) -> None:
        for name in ("hidden_activation", "classifier_activation"):
            check_activation(getattr(self, name), name)
        check_heads(self.hidden_size, self.num_attention_heads)
        if self.head_size % 2:
            sizes = f"{self.hidden_size} and {self.num_attention_heads}"
            raise InputError(f"hidden_size must be a multiple of 2 · num_attention_heads, got {sizes}")
        if self.classifier_pooling not in ("cls", "mean"):
            raise InputError(f"classifier_pooling must be cls or mean, got {self.classifier_pooling}")


def _thetas_of(settings: Mapping, plain: ModernBertConfig) -> dict[str, float]:
    by_kind, scaling = object_in(settings, "rope_parameters"), object_in(settings, "rope_scaling")
    return {
        "global_rope_theta": theta_of({**object_in(by_kind, GLOBAL), **scaling}, plain.global_rope_theta),
        "local_rope_theta": theta_of({**object_in(by_kind, LOCAL), **scaling}, plain.local_rope_theta),
    }


def _layer_types_of(plain: ModernBertConfig) -> tuple[str, ...]:
    """Return the kind of each layer: as listed, or else every so many layers a global one."""
    count, every = plain.num_hidden_layers, plain.global_attn_every_n_layers
    kinds = tuple(plain.layer_types) or tuple(LOCAL if number % every else GLOBAL for number in range(count))
    if len(kinds) != count or not set(kinds) <= {GLOBAL, LOCAL}:
        raise InputError(f"layer_types must name {GLOBAL} or {LOCAL} for each of {count} layers, got {list(kinds)}")
    return kinds


class ModernBert(Encoder):
    """ModernBERT's encoder with frozen weights (arguments as `Encoder`)."""

    words = "embeddings.tok_embeddings.weight"

    @staticmethod
    def shapes_of(config: ModernBertConfig) -> Shapes:
        """Return the name and shape of each weight."""
        size, inner = config.hidden_size, config.intermediate_size
        shapes: Shapes = {ModernBert.words: (config.vocab_size, size)}
        norms = ["embeddings.norm", "final_norm"]
        for number in range(config.num_hidden_layers):
            name = f"layers.{number}"
            norms += [f"{name}.mlp_norm"] + [f"{name}.attn_norm"] * (number > 0)
            linears = {
                "attn.Wqkv": (3 * size, size, config.attention_bias),
                "attn.Wo": (size, size, config.attention_bias),
                "mlp.Wi": (2 * inner, size, config.mlp_bias),
                "mlp.Wo": (size, inner, config.mlp_bias),
            }
            for part, (rows, columns, biased) in linears.items():
                shapes |= _weight_and_bias(f"{name}.{part}", (rows, columns), biased)
        for name in norms:
            shapes |= _weight_and_bias(name, (size,), config.norm_bias)
        return shapes

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        return self._normalised(words, "embeddings.norm")

    def _around(self, batch: Batch) -> tuple[dict[str, Rotation], list[Band]]:
        """Return how queries and keys are turned in each kind of layer, and the bands of local ones."""
        at, dim, thetas = batch.positions, self.config.head_size, self.config.thetas
        turns = {kind: Rotation.of(at, dim, theta, self._dtype) for kind, theta in thetas.items()}
        return turns, bands_of(batch, self.config.local_attention)

    def _attention(self, hidden: Tensor, number: int, batch: Batch, around: tuple, trace: Trace | None) -> Tensor:
        """Let each token look at its text, or what is near it; (tokens, hidden) -> the same."""
        (turns, bands), kind, window = around, self.config.layer_types[number], self.config.local_attention
        qkv = self._rotated(hidden, turns[kind], number)
        if trace is not None:
            mask = banded_mask(batch, window, self._dtype) if kind == LOCAL else None
            return trace.attend(*qkv.unbind(1), batch.lengths, self.config.head_size**-0.5, mask)
        if kind == LOCAL and bands:
            return banded_attention(qkv, bands)
        return ragged_attention(qkv.flatten(1), None, batch.lengths, self.config.num_attention_heads)

    def _rotated(self, hidden: Tensor, turn: Rotation, number: int) -> Tensor:
        """Return queries, keys and values, the first two turned; (tokens, hidden) -> (tokens, 3, heads, dim)."""
        name = f"layers.{number}.attn"
        if number:  # the first layer's states have just been normalised
            hidden = self._normalised(hidden, f"{name}_norm")
        qkv = self._linear(hidden, f"{name}.Wqkv").unflatten(1, (3, self.config.num_attention_heads, -1))
        turning, values = qkv.split((2, 1), 1)
        return cat([turn(turning), values], 1)

    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        name = f"layers.{number}"
        hidden = hidden + self._linear(seen, f"{name}.attn.Wo")
        inner = self._linear(self._normalised(hidden, f"{name}.mlp_norm"), f"{name}.mlp.Wi")
        inner, gate = inner.chunk(2, -1)  # (tokens, intermediate)
        return hidden + self._linear(self._activation(inner) * gate, f"{name}.mlp.Wo")

    def finish(self, states: Tensor) -> Tensor:
        """Normalise states as those of the last layer are; (tokens, hidden) -> the same."""
        return self._normalised(states, "final_norm")


def _weight_and_bias(name: str, shape: tuple[int, ...], biased: bool) -> Shapes:
    return {f"{name}.weight": shape} | ({f"{name}.bias": shape[:1]} if biased else {})


class ModernBertHead(Weighted):
    """The head of ModernBertForSequenceClassification: dense, activation and norm, then one row a label.

    Args:
        config: the sizes; `classifier_pooling` says whether the first token is read or the mean of all.
        weights: the arrays of a checkpoint by name.
        labels: how many logits a text gets.
    """

    def __init__(self, config: ModernBertConfig, weights: Mapping[str, np.ndarray], labels: int):
        self.reads, size = config.classifier_pooling, config.hidden_size
        taken = Weights(weights, "ModernBERT with a classifier")
        shapes = _weight_and_bias("head.dense", (size, size), config.classifier_bias)
        shapes |= _weight_and_bias("head.norm", (size,), config.norm_bias)
        shapes |= _weight_and_bias("classifier", (labels, size), True)
        super().__init__(taken.take_all(shapes), config.classifier_activation, config.norm_eps)

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits; (texts, hidden) -> (texts, labels)."""
        dense = self._activation(self._linear(states, "head.dense"))
        return self._linear(self._normalised(dense, "head.norm"), "classifier")
