"""DeBERTa v2 and v3: BERT's layers with disentangled attention, which knows distances in place of places.

Source: He, Liu, Gao, Chen, DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2020, arXiv:2006.03654;
He, Gao, Chen, DeBERTaV3, 2021, arXiv:2111.09543.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import InputError
from backlight.models.disentangled import distance_bias, relative_rows
from backlight.models.encoder import ACTIVATIONS, Trace, Weights, attend, check_activation, check_heads, check_sizes
from backlight.models.tokens import Batch
from backlight.ops.attention import scaled_dot_product_attention
from backlight.ops.embedding import embedding
from backlight.ops.joining import cat
from backlight.ops.linear import linear
from backlight.ops.normalisation import layer_norm
from backlight.ops.selecting import index_select
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True)
class DebertaConfig:
    """The sizes of a DeBERTa, as `config.json` names them."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 0
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_buckets: int = -1
    pos_att_type: tuple[str, ...] = ()
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    position_biased_input: bool = True
    embedding_size: int | None = None  # hidden_size by default
    conv_kernel_size: int = 0
    conv_groups: int = 1
    conv_act: str = "tanh"
    pooler_hidden_act: str = "gelu"

    @classmethod
    def of(cls, settings: Mapping) -> "DebertaConfig":
        """Return the sizes that a config.json says.

        Raises:
            InputError: a size is missing, or asks for something that this encoder does not do.
        """
        said = {name: settings[name] for name in cls.__match_args__ if settings.get(name) is not None}
        missing = [name for name in cls.__match_args__[:5] if name not in said]
        if missing:
            raise InputError(f"config.json must say {', '.join(missing)}, and does not: it is not a DeBERTa's")
        kinds = said.get("pos_att_type", ())
        kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
        config = cls(**said | {"pos_att_type": tuple(kind.strip() for kind in kinds)})
        config._check(settings)
        return config

    @property
    def max_tokens(self) -> int:
        """How many tokens the model reads."""
        return self.max_position_embeddings

    @property
    def farthest(self) -> int:
        """The distance up to which distances are told apart."""
        return self.max_relative_positions if self.max_relative_positions > 0 else self.max_position_embeddings

    @property
    def span(self) -> int:
        """How many relative embeddings stand for distances to one side."""
        return self.position_buckets if self.position_buckets > 0 else self.farthest

    @property
    def scale(self) -> float:
        """The factor of scores: 1 / √(dim · terms)."""
        dim = self.hidden_size // self.num_attention_heads
        return (dim * (1 + len(self.pos_att_type))) ** -0.5

    @property
    def normalises_distances(self) -> bool:
        """Whether relative embeddings are normalised before they are projected."""
        return "layer_norm" in [part.strip() for part in self.norm_rel_ebd.lower().split("|")]

    def _check(self, settings: Mapping) -> None:
        check_sizes(self, DebertaConfig.__match_args__[:6])
        for name in ("hidden_act", "pooler_hidden_act", "conv_act"):
            check_activation(getattr(self, name), name)
        check_heads(self.hidden_size, self.num_attention_heads)
        for name in ("attention_head_size", "pooler_hidden_size"):
            size = self.hidden_size // (self.num_attention_heads if name == "attention_head_size" else 1)
            if settings.get(name, size) != size:
                raise InputError(f"{name} must be {size}, as hidden_size asks for, got {settings[name]}")
        if len({*self.pos_att_type, "c2p", "p2c"}) > 2 or len(set(self.pos_att_type)) < len(self.pos_att_type):
            raise InputError(f"pos_att_type must be c2p, p2c, both or neither, got {', '.join(self.pos_att_type)}")
        if self.position_buckets > 0 and not 0 < self.position_buckets // 2 < self.farthest - 1:
            raise InputError(
                f"position_buckets must be 2 or more, and half of them less than the {self.farthest} relative "
                f"positions, got {self.position_buckets}"
            )
        if self.conv_kernel_size > 0 and self.conv_kernel_size % 2 == 0:
            raise InputError(f"conv_kernel_size must be odd, got {self.conv_kernel_size}: each token needs its state")
        if self.conv_kernel_size > 0 and self.hidden_size % self.conv_groups:
            sizes = f"{self.hidden_size} and {self.conv_groups}"
            raise InputError(f"hidden_size must be a multiple of conv_groups, got {sizes}")


class Deberta:
    """DeBERTa's encoder with frozen weights.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name, with or without the prefix `deberta.`; others are left alone.

    Raises:
        InputError: a weight is missing or has another shape than the sizes ask for.
    """

    def __init__(self, config: DebertaConfig, weights: Mapping[str, np.ndarray]):
        self.config = config
        taken = Weights(weights, "DeBERTa", ("deberta.",))
        arrays = {name: taken.take(name, *shape) for name, shape in _shapes_of(config).items()}
        for layer in _layers(config):
            for kind in ("weight", "bias"):
                parts = [arrays.pop(f"{layer}.attention.self.{part}.{kind}") for part in _JOINED]
                arrays[f"{layer}.attention.self.qkv.{kind}"] = np.concatenate(parts)
        self._weights = {name: from_numpy(array) for name, array in arrays.items()}
        self._activation = ACTIVATIONS[config.hidden_act]

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that the encoder computes with; query, key and value of a layer are one."""
        return dict(self._weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        found = {}
        for name, weight in self._weights.items():
            parts = weight.split(self.config.hidden_size) if ".self.qkv." in name else ()
            split = {name.replace("qkv", part): array for part, array in zip(_JOINED, parts)}
            found.update(split or {name: weight})
        return found

    def embed_words(self, ids: np.ndarray) -> Tensor:
        """Return the word embeddings of tokens, before positions and segments are added and before any projection.

        Shapes: ids (tokens,) -> (tokens, embedding)
        """
        return embedding(self._weights["embeddings.word_embeddings.weight"], from_numpy(ids))

    def __call__(
        self,
        batch: Batch,
        inputs_embeds: Tensor | None = None,
        wanted: Sequence[int] | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Return the last hidden states of texts laid end to end (see NOTE [An encoder]).

        Args:
            batch: the texts.
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, embedding).
            wanted: places of the tokens whose states are asked for, in the order of the result; all by default.
            trace: is filled with the hidden states and attentions of each layer; all layers then work on all tokens.

        Shapes: -> (tokens, hidden)

        Raises:
            InputError: a text is longer than the model has positions.
        """
        hidden = first = self._embedded(batch, inputs_embeds)
        distances = self._distances(batch)
        if trace is not None:
            trace.states.append(hidden)
        for number, name in enumerate(_layers(self.config)):
            seen = self._look(hidden, batch, name, distances, trace)
            last = number == self.config.num_hidden_layers - 1
            picked = None if trace is not None or not last else wanted
            hidden = self._after(_picked(seen, picked), _picked(hidden, picked), name)
            if number == 0 and self.config.conv_kernel_size > 0:
                hidden = self._with_neighbours(hidden, _picked(self._convolved(first, batch), picked))
            if trace is not None:
                trace.states.append(hidden)
        return hidden if trace is None else _picked(hidden, wanted)

    def _embedded(self, batch: Batch, words: Tensor | None) -> Tensor:
        """Return what the first layer is given; (tokens, embedding) -> (tokens, hidden)."""
        hidden = self.embed_words(batch.ids) if words is None else words
        if self.config.position_biased_input:
            limit = self.config.max_position_embeddings
            if batch.positions.max(initial=0) >= limit:
                found = batch.positions.max() + 1
                raise InputError(f"a text must have at most {limit} tokens, got {found}: cut it first")
            positions = self._weights["embeddings.position_embeddings.weight"]
            hidden = hidden + embedding(positions, from_numpy(batch.positions))
        if self.config.type_vocab_size > 0:
            types = self._weights["embeddings.token_type_embeddings.weight"]
            hidden = hidden + embedding(types, from_numpy(batch.type_ids))
        if "embeddings.embed_proj.weight" in self._weights:
            hidden = linear(hidden, self._weights["embeddings.embed_proj.weight"])
        return self._normalised(hidden, "embeddings.LayerNorm")

    def _distances(self, batch: Batch) -> tuple[Tensor, list[np.ndarray]] | None:
        """Return the embeddings of the distances that occur, and for each text which stands for each distance."""
        config = self.config
        if not (config.relative_attention and config.pos_att_type):
            return None
        reaches = [int(np.ptp(part)) for part in batch.parts(batch.positions)]
        rows = [relative_rows(far, config.span, config.position_buckets, config.farthest) for far in reaches]
        low, high = min(part[0] for part in rows), max(part[-1] for part in rows)
        found = self._weights["encoder.rel_embeddings.weight"][int(low) : int(high) + 1]  # (distances, hidden)
        if config.normalises_distances:
            found = self._normalised(found, "encoder.LayerNorm")
        return found, [part - low for part in rows]

    def _look(self, hidden: Tensor, batch: Batch, name: str, distances: tuple | None, trace: Trace | None) -> Tensor:
        """Let each token look at its text; (tokens, hidden) -> the same."""
        heads, scale = self.config.num_attention_heads, self.config.scale
        qkv = self._linear(hidden, f"{name}.attention.self.qkv").unflatten(1, (3, heads, -1)).unbind(1)
        by_text = list(zip(*(part.transpose(0, 1).split(batch.lengths, 1) for part in qkv)))  # (heads, tokens, dim)
        biases = [None] * len(by_text)
        if distances is not None:
            keys, queries = self._projected(distances[0], name)
            texts = zip(by_text, distances[1], batch.parts(batch.positions))
            biases = [distance_bias(q, k, keys, queries, rows, positions) for (q, k, _), rows, positions in texts]
        if trace is not None:
            seen, attentions = attend(*qkv, batch.lengths, scale, None if distances is None else biases)
            trace.attentions.append(attentions)
            return seen
        seen = [scaled_dot_product_attention(*one, bias, scale=scale) for one, bias in zip(by_text, biases)]
        return cat([part.transpose(0, 1).flatten(1) for part in seen])

    def _projected(self, distances: Tensor, name: str) -> tuple[Tensor | None, Tensor | None]:
        """Return distances as keys and as queries, scaled, (distances, heads, dim); None for a term that is off."""
        found = {}
        for kind, place in (("c2p", 1), ("p2c", 0)):
            if kind not in self.config.pos_att_type:
                continue
            own = "qkv" if self.config.share_att_key else _OWN[kind]
            weight, bias = (self._weights[f"{name}.attention.self.{own}.{part}"] for part in ("weight", "bias"))
            if self.config.share_att_key:
                weight, bias = (part.split(self.config.hidden_size)[place] for part in (weight, bias))
            projected = linear(distances, weight, bias) * self.config.scale
            found[kind] = projected.unflatten(1, (self.config.num_attention_heads, -1))
        return found.get("c2p"), found.get("p2c")

    def _after(self, seen: Tensor, hidden: Tensor, name: str) -> Tensor:
        """Work on what each token saw, alone; (tokens, hidden) -> the same."""
        seen = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._normalised(seen + hidden, f"{name}.attention.output.LayerNorm")
        inner = self._activation(self._linear(hidden, f"{name}.intermediate.dense"))  # (tokens, intermediate)
        return self._normalised(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")

    def _convolved(self, first: Tensor, batch: Batch) -> Tensor:
        """Return the convolution over each text; a token that was left out counts as zeros, like the text's ends."""
        config = self.config
        around = _neighbours(batch, config.conv_kernel_size)  # (tokens, kernel)
        padded = cat([first, first.new_zeros((1, config.hidden_size))])
        weight, bias = self._weights["encoder.conv.conv.weight"], self._weights["encoder.conv.conv.bias"]
        groups, outputs = config.conv_groups, config.hidden_size // config.conv_groups
        seen = index_select(padded, 0, from_numpy(around.reshape(-1))).unflatten(0, around.shape)
        seen = seen.unflatten(2, (groups, -1)).permute(2, 0, 3, 1).flatten(2)  # (groups, tokens, inputs · kernel)
        weight = weight.flatten(1).unflatten(0, (groups, outputs))  # (groups, outputs, inputs · kernel)
        return ACTIVATIONS[config.conv_act]((seen @ weight.mT).transpose(0, 1).flatten(1) + bias)

    def _with_neighbours(self, hidden: Tensor, convolved: Tensor) -> Tensor:
        return self._normalised(hidden + convolved, "encoder.conv.LayerNorm")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalised(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(x, (self.config.hidden_size,), weight, bias, self.config.layer_norm_eps)


def _neighbours(batch: Batch, kernel: int) -> np.ndarray:
    """Return where the tokens around each token stand in the row: one past its end for those that there are not.

    Shapes: -> (tokens, kernel)
    """
    found, nobody = [], sum(batch.lengths)
    for start, positions in zip(batch.starts, batch.parts(batch.positions)):
        half = kernel // 2
        at = np.full(positions.max(initial=0) + kernel, nobody)
        at[positions + half] = start + np.arange(len(positions))
        found.append(at[positions[:, None] + np.arange(kernel)])
    return np.concatenate(found)


def _layers(config: DebertaConfig) -> list[str]:
    """Return the name of each layer, which its weights' names begin with."""
    return [f"encoder.layer.{number}" for number in range(config.num_hidden_layers)]


def _picked(states: Tensor, places: Sequence[int] | None) -> Tensor:
    return states if places is None else index_select(states, 0, from_numpy(np.asarray(places, np.int64)))


def _shapes_of(config: DebertaConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of each weight."""
    size, wide = config.hidden_size, config.embedding_size or config.hidden_size
    shapes = {"embeddings.word_embeddings.weight": (config.vocab_size, wide)}
    if config.position_biased_input:
        shapes["embeddings.position_embeddings.weight"] = (config.max_position_embeddings, wide)
    if config.type_vocab_size > 0:
        shapes["embeddings.token_type_embeddings.weight"] = (config.type_vocab_size, wide)
    if wide != size:
        shapes["embeddings.embed_proj.weight"] = (size, wide)
    norms = ["embeddings.LayerNorm"]
    if config.relative_attention:
        shapes["encoder.rel_embeddings.weight"] = (2 * config.span, size)
        norms += ["encoder.LayerNorm"] * config.normalises_distances
    if config.conv_kernel_size > 0:
        shapes["encoder.conv.conv.weight"] = (size, size // config.conv_groups, config.conv_kernel_size)
        shapes["encoder.conv.conv.bias"] = (size,)
        norms.append("encoder.conv.LayerNorm")
    for layer in _layers(config):
        for name, shape in _linears_of(config).items():
            shapes[f"{layer}.{name}.weight"], shapes[f"{layer}.{name}.bias"] = shape, shape[:1]
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    return shapes | {f"{norm}.{kind}": (size,) for norm in norms for kind in ("weight", "bias")}


def _linears_of(config: DebertaConfig) -> dict[str, tuple[int, int]]:
    """Return the name and shape of each weight of a layer's products."""
    size, inner = config.hidden_size, config.intermediate_size
    names = [*_JOINED]
    if config.relative_attention and not config.share_att_key:
        names += [_OWN[kind] for kind in config.pos_att_type]
    return {f"attention.self.{name}": (size, size) for name in names} | {
        "attention.output.dense": (size, size),
        "intermediate.dense": (inner, size),
        "output.dense": (size, inner),
    }


_JOINED = ("query_proj", "key_proj", "value_proj")
_OWN = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}  # what projects distances where the tokens' does not


class DebertaHead:
    """The head of DebertaV2ForSequenceClassification: a dense layer over the first token, then one row a label.

    Args:
        config: the sizes.
        weights: the arrays of a checkpoint by name.
        labels: how many logits a text gets.
    """

    reads = "cls"

    def __init__(self, config: DebertaConfig, weights: Mapping[str, np.ndarray], labels: int):
        taken, size = Weights(weights, "DeBERTa with a classifier", ("deberta.",)), config.hidden_size
        shapes = {
            "pooler.dense.weight": (size, size),
            "pooler.dense.bias": (size,),
            "classifier.weight": (labels, size),
            "classifier.bias": (labels,),
        }
        self._weights = {name: from_numpy(taken.take(name, *shape)) for name, shape in shapes.items()}
        self._activation = ACTIVATIONS[config.pooler_hidden_act]

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that the head computes with, by the names that checkpoints give them."""
        return dict(self._weights)

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits; (texts, hidden) -> (texts, labels)."""
        weights = self._weights
        pooled = self._activation(linear(states, weights["pooler.dense.weight"], weights["pooler.dense.bias"]))
        return linear(pooled, weights["classifier.weight"], weights["classifier.bias"])
