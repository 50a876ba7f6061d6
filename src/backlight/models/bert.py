"""BERT's encoder: word, position and segment embeddings, then layers of self-attention, normalised after each sum.

Source: Devlin, Chang, Lee, Toutanova, BERT: Pre-training of Deep Bidirectional Transformers, 2018, arXiv:1810.04805.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError
from backlight.models.tokens import Batch
from backlight.ops.activations import relu, sigmoid
from backlight.ops.attention import ragged_attention
from backlight.ops.embedding import embedding
from backlight.ops.gates import gelu, silu
from backlight.ops.linear import linear
from backlight.ops.normalisation import layer_norm
from backlight.ops.pointwise import tanh
from backlight.ops.selecting import index_select
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


def _tanh_gelu(x):
    return gelu(x, approximate="tanh")


def _quick_gelu(x):
    return x * sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable] = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": _tanh_gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "quick_gelu": _quick_gelu,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": tanh,
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, as `config.json` names them."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12

    @classmethod
    def of(cls, settings: Mapping) -> "BertConfig":
        """Return the sizes that a config.json says.

        Raises:
            InputError: a size is missing, or asks for something that this encoder does not do.
        """
        missing = [name for name in cls.__match_args__[:5] if name not in settings]
        if missing:
            raise InputError(f"config.json must say {', '.join(missing)}, and does not: it is not a BERT's")
        config = cls(**{name: settings[name] for name in cls.__match_args__ if name in settings})
        config._check(settings)
        return config

    def _check(self, settings: Mapping) -> None:
        for name in BertConfig.__match_args__[:7]:
            size = getattr(self, name)
            if not isinstance(size, int) or size < 1:
                raise InputError(f"{name} must be a whole number, 1 or more, got {size!r}")
        if self.hidden_act not in ACTIVATIONS:
            raise InputError(f"hidden_act must be one of {', '.join(ACTIVATIONS)}, got {self.hidden_act}")
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                f"hidden_size must be a multiple of num_attention_heads, got {self.hidden_size} and "
                f"{self.num_attention_heads}"
            )
        kind = settings.get("position_embedding_type") or "absolute"
        if kind != "absolute":
            raise InputError(f"position_embedding_type must be absolute, got {kind}: this encoder adds positions once")
        if settings.get("is_decoder"):
            raise InputError("is_decoder must be false: this encoder looks both ways")


class Bert:
    """BERT's encoder with frozen weights.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name, with or without the prefix `bert.`; others are left alone.

    Raises:
        InputError: a weight is missing or has another shape than the sizes ask for.
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray]):
        self.config = config
        arrays = {name: _checked(name, shape, weights) for name, shape in _shapes_of(config).items()}
        self._projections = {layer: _joined(arrays, layer) for layer in _layers(config)}
        self._weights = {name: from_numpy(array) for name, array in arrays.items()}
        self._activation = ACTIVATIONS[config.hidden_act]

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        return dict(self._weights)

    def embed_words(self, ids: np.ndarray) -> Tensor:
        """Return the word embeddings of tokens, before position and segment are added.

        Shapes: ids (tokens,) -> (tokens, hidden)
        """
        return embedding(self._weights["embeddings.word_embeddings.weight"], from_numpy(ids))

    def __call__(
        self, batch: Batch, inputs_embeds: Tensor | None = None, wanted: Sequence[int] | None = None
    ) -> Tensor:
        """Return the last hidden states of texts laid end to end.

        Args:
            batch: the texts.
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).
            wanted: places of the tokens whose states are asked for, in the order of the result; all by default. The
                last layer works on these alone.

        Shapes: -> (tokens, hidden)

        Raises:
            InputError: a text is longer than the model has positions.
        """
        limit = self.config.max_position_embeddings
        if max(batch.lengths) > limit:
            raise InputError(f"a text must have at most {limit} tokens, got {max(batch.lengths)}: cut it first")
        words = self.embed_words(batch.ids) if inputs_embeds is None else inputs_embeds
        types = embedding(self._weights["embeddings.token_type_embeddings.weight"], from_numpy(batch.type_ids))
        positions = embedding(self._weights["embeddings.position_embeddings.weight"], from_numpy(batch.positions))
        hidden = self._normalised(words + types + positions, "embeddings.LayerNorm")
        *layers, last = _layers(self.config)
        for name in layers:
            hidden = self._layer(hidden, batch, name)
        return self._layer(hidden, batch, last, wanted)

    def _layer(self, hidden: Tensor, batch: Batch, name: str, wanted: Sequence[int] | None = None) -> Tensor:
        """Let each token look at its text, then work on each (that is wanted) alone; (tokens, hidden) -> the same."""
        weight, bias = self._projections[name]
        seen = ragged_attention(linear(hidden, weight, bias), batch.lengths, self.config.num_attention_heads)
        if wanted is not None:
            places = from_numpy(np.asarray(wanted, np.int64))
            seen, hidden = index_select(seen, 0, places), index_select(hidden, 0, places)
        seen = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._normalised(seen + hidden, f"{name}.attention.output.LayerNorm")
        inner = self._activation(self._linear(hidden, f"{name}.intermediate.dense"))  # (tokens, intermediate)
        return self._normalised(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalised(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(x, (self.config.hidden_size,), weight, bias, self.config.layer_norm_eps)


def _layers(config: BertConfig) -> list[str]:
    """Return the name of each layer, which its weights' names begin with."""
    return [f"encoder.layer.{number}" for number in range(config.num_hidden_layers)]


def _joined(arrays: dict[str, np.ndarray], layer: str) -> tuple[Tensor, Tensor]:
    """Return weight and bias of query, key and value as one; the arrays themselves become views of these."""
    joined = []
    for kind in ("weight", "bias"):
        names = [f"{layer}.attention.self.{part}.{kind}" for part in ("query", "key", "value")]
        whole = np.concatenate([arrays[name] for name in names])
        arrays.update(zip(names, np.split(whole, 3)))
        joined.append(from_numpy(whole))
    return tuple(joined)


def _shapes_of(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of each weight."""
    size, inner = config.hidden_size, config.intermediate_size
    shapes = {
        "embeddings.word_embeddings.weight": (config.vocab_size, size),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, size),
        "embeddings.token_type_embeddings.weight": (config.type_vocab_size, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    linears = {
        "attention.self.query": (size, size),
        "attention.self.key": (size, size),
        "attention.self.value": (size, size),
        "attention.output.dense": (size, size),
        "intermediate.dense": (inner, size),
        "output.dense": (size, inner),
    }
    for layer in _layers(config):
        for name, shape in linears.items():
            shapes[f"{layer}.{name}.weight"], shapes[f"{layer}.{name}.bias"] = shape, shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{name}.weight"] = shapes[f"{layer}.{name}.bias"] = (size,)
    return shapes


def _checked(name: str, shape: tuple[int, ...], weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return a weight in float32 (or float64), by any of the names that checkpoints give it."""
    old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    found = next((weights[key] for key in (name, f"bert.{name}", old, f"bert.{old}") if key in weights), None)
    if found is None:
        raise InputError(f"the checkpoint must hold {name} (or bert.{name}), and does not: it is not a BERT's")
    if found.shape != shape:
        raise InputError(f"{name} must have the shape {shape} that config.json asks for, got {found.shape}")
    return found if found.dtype == np.float64 else np.asarray(found, np.float32)
