"""BERT's encoder: word, position and segment embeddings, then layers of self-attention, normalised after each sum.

Families of BERT's shape say what differs: ELECTRA, RoBERTa, XLM-R, CamemBERT and DistilBERT.

Source: Devlin, Chang, Lee, Toutanova, BERT: Pre-training of Deep Bidirectional Transformers, 2018, arXiv:1810.04805.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from backlight.errors import InputError
from backlight.models.checkpoint import Weights
from backlight.models.encoders.encoder import (
    Encoder,
    EncoderConfig,
    Epsilon,
    Inner,
    Layers,
    Rows,
    Shapes,
    Size,
    Trace,
    Weighted,
    check_activation,
    check_heads,
    check_positions,
    picked,
)
from backlight.models.tokens import Batch
from backlight.ops.indexing.embedding import embedding
from backlight.ops.nn.attention import ragged_attention
from backlight.ops.nn.linear import linear
from backlight.ops.nn.softmax import softmax
from backlight.ops.shape.joining import stack
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The sizes of a BERT, as `config.json` names them; other families of its shape say what differs."""

    family: ClassVar[str] = "BERT"
    prefix: ClassVar[str] = "bert."
    head: ClassVar[tuple[str, str, str]] = ("pooler.dense", "tanh", "classifier")  # a layer, its activation, a layer
    first_position: ClassVar[int] = 0  # the row of the first token's position

    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    intermediate_size: Size
    max_position_embeddings: Size = 512
    type_vocab_size: Size = 2
    hidden_act: str = "gelu"
    layer_norm_eps: Epsilon = 1e-12

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

    def _check(self, settings: Mapping) -> None:
        check_activation(self.hidden_act)
        check_heads(self.hidden_size, self.num_attention_heads)
        kind = settings.get("position_embedding_type") or "absolute"
        if kind != "absolute":
            raise InputError(f"position_embedding_type must be absolute, got {kind}: this encoder adds positions once")
        if settings.get("is_decoder"):
            raise InputError("is_decoder must be false: this encoder looks both ways")


class BertShaped(Encoder):
    """An encoder whose layers are BERT's, however tokens look at each other: normalised after each sum.

    Query, key and value of a layer are one product.
    """

    words = "embeddings.word_embeddings.weight"
    joined: ClassVar[tuple[str, str, str]]  # what checkpoints call query, key and value

    def _taken(self, config: EncoderConfig, weights: Weights) -> dict[str, np.ndarray]:
        """Return what the encoder computes with: query, key and value are one."""
        arrays = super()._taken(config, weights)
        for layer in _layers(config):
            for kind in ("weight", "bias"):
                parts = [arrays.pop(f"{layer}.attention.self.{part}.{kind}") for part in self.joined]
                arrays[f"{layer}.attention.self.qkv.{kind}"] = np.concatenate(parts)
        return arrays

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them: query, key and value are three."""
        found = {}
        for name, weight in self._weights.items():
            parts = weight.split(self.config.hidden_size) if ".self.qkv." in name else ()
            split = {name.replace("qkv", part): array for part, array in zip(self.joined, parts)}
            found.update(split or {name: weight})
        return found

    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        name = f"encoder.layer.{number}"
        seen = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._normalised(seen + hidden, f"{name}.attention.output.LayerNorm")
        inner = self._activation(self._linear(hidden, f"{name}.intermediate.dense"))  # (tokens, intermediate)
        return self._normalised(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")


class Bert(BertShaped):
    """BERT's encoder, or another of its shape, with frozen weights (arguments as `Encoder`)."""

    joined = ("query", "key", "value")
    weighs_keys = True

    @staticmethod
    def shapes_of(config: BertConfig) -> Shapes:
        """Return the name and shape of each weight."""
        size, width = config.hidden_size, config.embedding_size
        shapes = {
            Bert.words: (config.vocab_size, width),
            "embeddings.position_embeddings.weight": (config.max_position_embeddings, width),
            "embeddings.LayerNorm.weight": (width,),
            "embeddings.LayerNorm.bias": (width,),
        }
        if config.segments:
            shapes[f"{_SEGMENTS}.weight"] = (config.segments, width)
        if width != size:
            shapes |= {f"{_PROJECT}.weight": (size, width), f"{_PROJECT}.bias": (size,)}
        return shapes | layer_shapes(config, Bert.joined)

    def parameters(self) -> dict[str, Tensor]:
        """Return the tensors that the encoder computes with; query, key and value of a layer are one."""
        return {self.config.name_of(name): weight for name, weight in self._weights.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        return {self.config.name_of(name): weight for name, weight in super().state_dict().items()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what the encoder computes with by BERT's names, whatever the family calls it."""
        return {name: weight.detach().numpy() for name, weight in self._weights.items()}

    def check_places(self, batch: Batch) -> None:
        """Raise if a token has a position or a segment that the model does not know."""
        check_positions(batch, self.config.max_tokens)
        segments = self.config.segments
        if segments and batch.type_ids.max(initial=0) >= segments:
            raise InputError(f"type_ids must be below type_vocab_size = {segments}, got {batch.type_ids.max()}")

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        self.check_places(batch)
        if self.config.segments:
            words = words + embedding(self._weights[f"{_SEGMENTS}.weight"], from_numpy(batch.type_ids))
        places = from_numpy(batch.positions + self.config.first_position)
        places = embedding(self._weights["embeddings.position_embeddings.weight"], places)
        hidden = self._normalised(words + places, "embeddings.LayerNorm")
        return self._linear(hidden, _PROJECT) if f"{_PROJECT}.weight" in self._weights else hidden

    def _attention(self, hidden: Tensor, number: int, batch: Batch, around: None, trace: Inner) -> Tensor:
        qkv, heads = self._linear(hidden, f"encoder.layer.{number}.attention.self.qkv"), self.config.num_attention_heads
        if isinstance(trace, Trace):
            dim = self.config.hidden_size // heads
            return trace.attend(*qkv.unflatten(1, (3, heads, dim)).unbind(1), batch.lengths, dim**-0.5)
        return ragged_attention(qkv, trace and trace.logs, batch.lengths, heads)

    def _layer(self, hidden: Tensor, number: int, batch: Batch, around: None, rows: Rows, trace: Inner) -> Tensor:
        if rows is None or not _one_each(rows, batch):
            return super()._layer(hidden, number, batch, around, rows, trace)
        own = picked(hidden, rows)
        return self._after(self._attention_of_one(own, hidden, number, batch, trace), own, number)

    def _attention_of_one(self, own: Tensor, hidden: Tensor, number: int, batch: Batch, trace: Inner) -> Tensor:
        """Let one token of each text look at its text; (texts, hidden), (tokens, hidden) -> (texts, hidden).

        Keys and values are not made: q · (K x) = (Kᵀ q) · x, and Σ p · (V x) = V Σ p · x. What keys have as bias moves
        all scores of a query alike, and softmax forgets it; weights sum to 1, so what values have is added once.
        """
        size, heads = self.config.hidden_size, self.config.num_attention_heads
        weights, biases = (
            self._weights[f"encoder.layer.{number}.attention.self.qkv.{kind}"] for kind in ("weight", "bias")
        )
        (query, key, value), (of_query, _, of_value) = weights.split(size), biases.split(size)
        key, value = (part.unflatten(0, (heads, -1)) for part in (key, value))  # (heads, dim, hidden)
        queries = linear(own, query, of_query).unflatten(1, (heads, -1)).transpose(0, 1)  # (heads, texts, dim)
        looks = (queries @ key * (size // heads) ** -0.5).unbind(1)  # each (heads, hidden)
        logs = None if trace is None else trace.logs.split(batch.lengths)
        means = []
        for text, (look, states) in enumerate(zip(looks, hidden.split(batch.lengths))):
            scores = look @ states.mT  # (heads, tokens)
            means.append(softmax(scores if logs is None else scores + logs[text], -1) @ states)
        return (stack(means, 1) @ value.mT).transpose(0, 1).flatten(1) + of_value


def _one_each(rows: Sequence[int], batch: Batch) -> bool:
    """Return whether rows are one token of each text, in the order of the texts."""
    ends = np.cumsum(batch.lengths)
    return len(rows) == len(ends) and bool(((ends - batch.lengths <= rows) & (rows < ends)).all())


def _layers(config: EncoderConfig) -> list[str]:
    """Return the name of each layer, which its weights' names begin with."""
    return [f"encoder.layer.{number}" for number in range(config.num_hidden_layers)]


def layer_shapes(config: EncoderConfig, products: Sequence[str]) -> Shapes:
    """Return the name and shape of each weight of the layers, given the products that attention begins with."""
    size, inner = config.hidden_size, config.intermediate_size
    linears = {f"attention.self.{name}": (size, size) for name in products}
    linears |= {"attention.output.dense": (size, size), "intermediate.dense": (inner, size)}
    linears["output.dense"] = (size, inner)
    shapes = {}
    for layer in _layers(config):
        for name, shape in linears.items():
            shapes[f"{layer}.{name}.weight"], shapes[f"{layer}.{name}.bias"] = shape, shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{name}.weight"] = shapes[f"{layer}.{name}.bias"] = (size,)
    return shapes


_SEGMENTS = "embeddings.token_type_embeddings"
_PROJECT = "embeddings_project"  # from embeddings to hidden states of another size


class BertHead(Weighted):
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
        rows = {self._dense: size, self._out: labels}
        shapes = {f"{name}.weight": (count, size) for name, count in rows.items()}
        shapes |= {f"{name}.bias": (count,) for name, count in rows.items()}
        super().__init__(taken.take_all(shapes), self._act)

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


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """The sizes of an ELECTRA, whose embeddings may be shorter than its hidden states.

    Source: Clark, Luong, Le, Manning, ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators,
    2020, arXiv:2003.10555.
    """

    family: ClassVar[str] = "ELECTRA"
    prefix: ClassVar[str] = "electra."
    head: ClassVar[tuple[str, str, str]] = ("classifier.dense", "gelu", "classifier.out_proj")

    embedding_size: Size = 128


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The sizes of a RoBERTa, whose positions count from the id of its padding + 1.

    Source: Liu and others, RoBERTa: A Robustly Optimized BERT Pretraining Approach, 2019, arXiv:1907.11692.
    """

    family: ClassVar[str] = "RoBERTa"
    prefix: ClassVar[str] = "roberta."
    head: ClassVar[tuple[str, str, str]] = ("classifier.dense", "tanh", "classifier.out_proj")

    pad_token_id: int = 1

    @property
    def first_position(self) -> int:
        """The row of the first token's position."""
        return self.pad_token_id + 1

    def _check(self, settings: Mapping) -> None:
        super()._check(settings)
        last = self.max_position_embeddings - 2
        said = settings.get("pad_token_id", self.pad_token_id)
        if said is None or not 0 <= self.pad_token_id <= last:
            raise InputError(f"pad_token_id must be a whole number from 0 to {last}, got {said!r}")


@dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """The sizes of an XLM-R: RoBERTa for a hundred languages.

    Source: Conneau and others, Unsupervised Cross-lingual Representation Learning at Scale, 2019, arXiv:1911.02116.
    """

    family: ClassVar[str] = "XLM-R"


@dataclass(frozen=True)
class CamembertConfig(RobertaConfig):
    """The sizes of a CamemBERT: RoBERTa for French.

    Source: Martin and others, CamemBERT: a Tasty French Language Model, 2019, arXiv:1911.03894.
    """

    family: ClassVar[str] = "CamemBERT"


@dataclass(frozen=True)
class DistilBertConfig(BertConfig):
    """The sizes of a DistilBERT, which has no segments, and names of its own.

    Source: Sanh, Debut, Chaumond, Wolf, DistilBERT, a distilled version of BERT, 2019, arXiv:1910.01108.
    """

    family: ClassVar[str] = "DistilBERT"
    prefix: ClassVar[str] = "distilbert."
    head: ClassVar[tuple[str, str, str]] = ("pre_classifier", "relu", "classifier")
    names: ClassVar[Mapping[str, str]] = {
        "encoder.layer": "transformer.layer",
        "attention.self.qkv": "attention.qkv_lin",
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "output.LayerNorm": "output_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
    }

    @property
    def segments(self) -> int:
        """None."""
        return 0

    @classmethod
    def of(cls, settings: Mapping) -> Self:
        """Return the sizes that a config.json says, by DistilBERT's names of them."""
        said = {ours: settings[name] for ours, name in _SIZES.items() if name in settings}
        return super().of({**settings, **said, "layer_norm_eps": 1e-12})


_SIZES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
}
