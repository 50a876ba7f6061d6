"""BERT's encoder: word, position and segment embeddings, then layers of self-attention, normalised after each sum.

Source: Devlin, Chang, Lee, Toutanova, BERT: Pre-training of Deep Bidirectional Transformers, 2018, arXiv:1810.04805.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from backlight.errors import InputError
from backlight.models.encoder import ACTIVATIONS, Trace, Weights, attend, check_activation, check_heads, check_sizes
from backlight.models.tokens import Batch
from backlight.ops.attention import ragged_attention
from backlight.ops.embedding import embedding
from backlight.ops.linear import linear
from backlight.ops.normalisation import layer_norm
from backlight.ops.selecting import index_select
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, as `config.json` names them; other families of its shape say what differs."""

    family: ClassVar[str] = "BERT"
    prefix: ClassVar[str] = "bert."  # of the encoder's weights in a checkpoint with a head
    head: ClassVar[tuple[str, str, str]] = ("pooler.dense", "tanh", "classifier")  # a layer, its activation, a layer
    names: ClassVar[Mapping[str, str]] = {}  # parts of BERT's names of weights, and what the family says instead
    first_position: ClassVar[int] = 0  # the row of the first token's position

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12

    @property
    def segments(self) -> int:
        """How many segments the model tells apart; 0 where it has no embeddings of them."""
        return self.type_vocab_size

    @property
    def embedding_size(self) -> int:
        """How long the embeddings of words, positions and segments are."""
        return self.hidden_size

    @property
    def max_tokens(self) -> int:
        """How many tokens a text may have."""
        return self.max_position_embeddings - self.first_position

    def name_of(self, weight: str) -> str:
        """Return what the family's checkpoints call a weight of BERT's."""
        for part, instead in self.names.items():
            weight = weight.replace(part, instead)
        return weight

    @classmethod
    def of(cls, settings: Mapping) -> "BertConfig":
        """Return the sizes that a config.json says.

        Raises:
            InputError: a size is missing, or asks for something that this encoder does not do.
        """
        missing = [name for name in cls.__match_args__[:5] if name not in settings]
        if missing:
            raise InputError(f"config.json must say {', '.join(missing)}, and does not: it is not a {cls.family}'s")
        config = cls(**{name: settings[name] for name in cls.__match_args__ if name in settings})
        config._check(settings)
        return config

    def _check(self, settings: Mapping) -> None:
        check_sizes(self, BertConfig.__match_args__[:7])
        check_activation(self.hidden_act)
        check_heads(self.hidden_size, self.num_attention_heads)
        kind = settings.get("position_embedding_type") or "absolute"
        if kind != "absolute":
            raise InputError(f"position_embedding_type must be absolute, got {kind}: this encoder adds positions once")
        if settings.get("is_decoder"):
            raise InputError("is_decoder must be false: this encoder looks both ways")


class Bert:
    """BERT's encoder, or another of its shape, with frozen weights.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name, with or without the prefix `bert.`; others are left alone.

    Raises:
        InputError: a weight is missing or has another shape than the sizes ask for.
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray]):
        self.config = config
        taken = Weights(weights, config.family, (config.prefix,))
        arrays = {name: taken.take(config.name_of(name), *shape) for name, shape in _shapes_of(config).items()}
        self._weights = {name: from_numpy(array) for name, array in _joined(arrays, config).items()}
        self._activation = ACTIVATIONS[config.hidden_act]

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that the encoder computes with; query, key and value of a layer are one."""
        return {self.config.name_of(name): weight for name, weight in self._weights.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        found = {}
        for name, weight in self._weights.items():
            parts = weight.split(self.config.hidden_size) if ".self.qkv." in name else ()
            split = {name.replace("qkv", part): array for part, array in zip(_JOINED, parts)}
            found.update(split or {name: weight})
        return {self.config.name_of(name): weight for name, weight in found.items()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what the encoder computes with by BERT's names, whatever the family calls it."""
        return {name: weight.detach().numpy() for name, weight in self._weights.items()}

    def embed_words(self, ids: np.ndarray) -> Tensor:
        """Return the word embeddings of tokens, before position and segment are added.

        Shapes: ids (tokens,) -> (tokens, hidden), or (tokens, embedding_size) where the family has one
        """
        return embedding(self._weights["embeddings.word_embeddings.weight"], from_numpy(ids))

    def __call__(
        self,
        batch: Batch,
        inputs_embeds: Tensor | None = None,
        wanted: Sequence[int] | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Return the last hidden states of texts laid end to end.

        Args:
            batch: the texts.
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, as `embed_words` gives them.
            wanted: places of the tokens whose states are asked for, in the order of the result; all by default. The
                last layer works on these alone.
            trace: is filled with the hidden states and attentions of each layer; all layers then work on all tokens.

        Shapes: -> (tokens, hidden)

        Raises:
            InputError: a text is longer than the model has positions, or has a segment that the model does not know.
        """
        self._check(batch)
        hidden = self._embedded(batch, self.embed_words(batch.ids) if inputs_embeds is None else inputs_embeds)
        if trace is not None:
            return self._traced(hidden, batch, wanted, trace)
        *layers, last = _layers(self.config)
        for name in layers:
            hidden = self._after(self._look(hidden, batch, name), hidden, name)
        seen = self._look(hidden, batch, last)
        if wanted is not None:
            seen, hidden = _picked(seen, wanted), _picked(hidden, wanted)
        return self._after(seen, hidden, last)

    def _check(self, batch: Batch) -> None:
        limit, segments = self.config.max_tokens, self.config.segments
        if batch.positions.max(initial=0) >= limit:
            raise InputError(f"a text must have at most {limit} tokens, got {batch.positions.max() + 1}: cut it first")
        if segments and batch.type_ids.max(initial=0) >= segments:
            raise InputError(f"type_ids must be below type_vocab_size = {segments}, got {batch.type_ids.max()}")

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        """Return what the first layer is given; (tokens, embedding_size) -> (tokens, hidden)."""
        if self.config.segments:
            words = words + embedding(self._weights[f"{_SEGMENTS}.weight"], from_numpy(batch.type_ids))
        places = from_numpy(batch.positions + self.config.first_position)
        places = embedding(self._weights["embeddings.position_embeddings.weight"], places)
        hidden = self._normalised(words + places, "embeddings.LayerNorm")
        return self._linear(hidden, _PROJECT) if f"{_PROJECT}.weight" in self._weights else hidden

    def _traced(self, hidden: Tensor, batch: Batch, wanted: Sequence[int] | None, trace: Trace) -> Tensor:
        """Run the layers with each step in sight."""
        trace.states.append(hidden)
        heads = self.config.num_attention_heads
        for name in _layers(self.config):
            qkv = self._linear(hidden, f"{name}.attention.self.qkv").unflatten(1, (3, heads, -1)).unbind(1)
            seen, attentions = attend(*qkv, batch.lengths, (self.config.hidden_size // heads) ** -0.5)
            hidden = self._after(seen, hidden, name)
            trace.states.append(hidden)
            trace.attentions.append(attentions)
        return hidden if wanted is None else _picked(hidden, wanted)

    def _look(self, hidden: Tensor, batch: Batch, name: str) -> Tensor:
        """Let each token look at its text; (tokens, hidden) -> the same."""
        qkv = self._linear(hidden, f"{name}.attention.self.qkv")
        return ragged_attention(qkv, batch.lengths, self.config.num_attention_heads)

    def _after(self, seen: Tensor, hidden: Tensor, name: str) -> Tensor:
        """Work on what each token saw, alone; (tokens, hidden) -> the same."""
        seen = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._normalised(seen + hidden, f"{name}.attention.output.LayerNorm")
        inner = self._activation(self._linear(hidden, f"{name}.intermediate.dense"))  # (tokens, intermediate)
        return self._normalised(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalised(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(x, weight.shape, weight, bias, self.config.layer_norm_eps)


def _layers(config: BertConfig) -> list[str]:
    """Return the name of each layer, which its weights' names begin with."""
    return [f"encoder.layer.{number}" for number in range(config.num_hidden_layers)]


def _joined(arrays: dict[str, np.ndarray], config: BertConfig) -> dict[str, np.ndarray]:
    """Return the arrays with query, key and value of each layer as one."""
    arrays = dict(arrays)
    for layer in _layers(config):
        for kind in ("weight", "bias"):
            parts = [arrays.pop(f"{layer}.attention.self.{part}.{kind}") for part in _JOINED]
            arrays[f"{layer}.attention.self.qkv.{kind}"] = np.concatenate(parts)
    return arrays


def _picked(states: Tensor, places: Sequence[int]) -> Tensor:
    return index_select(states, 0, from_numpy(np.asarray(places, np.int64)))


def _shapes_of(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of each weight."""
    size, inner, width = config.hidden_size, config.intermediate_size, config.embedding_size
    shapes = {
        "embeddings.word_embeddings.weight": (config.vocab_size, width),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    if config.segments:
        shapes[f"{_SEGMENTS}.weight"] = (config.segments, width)
    if width != size:
        shapes |= {f"{_PROJECT}.weight": (size, width), f"{_PROJECT}.bias": (size,)}
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


_JOINED = ("query", "key", "value")
_SEGMENTS = "embeddings.token_type_embeddings"
_PROJECT = "embeddings_project"  # from embeddings to hidden states of another size


class BertHead:
    """The head of BertForSequenceClassification: a dense layer and tanh over the first token, then one row a label.

    Other families have their own names for the two layers, and their own activation between them.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name.
        labels: how many logits a text gets.
    """

    reads = "cls"

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray], labels: int):
        taken, size = Weights(weights, f"{config.family} with a classifier", (config.prefix,)), config.hidden_size
        self._dense, self._act, self._out = config.head
        self._activation = ACTIVATIONS[self._act]
        rows = {self._dense: size, self._out: labels}
        shapes = {f"{name}.weight": (count, size) for name, count in rows.items()}
        shapes |= {f"{name}.bias": (count,) for name, count in rows.items()}
        self._weights = {name: from_numpy(taken.take(name, *shape)) for name, shape in shapes.items()}

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that the head computes with, by the names that checkpoints give them."""
        return dict(self._weights)

    def steps(self) -> tuple[tuple[np.ndarray, np.ndarray], str, tuple[np.ndarray, np.ndarray]]:
        """Return weight and bias of the first layer, the activation's name, weight and bias of the second."""
        first, second = (
            tuple(self._weights[f"{name}.{kind}"].detach().numpy() for kind in ("weight", "bias"))
            for name in (self._dense, self._out)
        )
        return first, self._act, second

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits; (texts, hidden) -> (texts, labels)."""
        return self._linear(self._activation(self._linear(states, self._dense)), self._out)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])
