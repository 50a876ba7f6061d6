"""DeBERTa v2 and v3: BERT's layers with disentangled attention, which knows distances in place of places.

NOTE [Disentangled attention]
With q and k of the tokens, and p the embeddings of distances, projected as keys or as queries, a score is

    (q_i · k_j  +  q_i · p_key(i − j)  +  k_j · p_query(i − j)) / √(dim · terms)

Each of the last two terms can be off. Distances are put into buckets that widen with them. A term is made as the
products of each token with all distances that its text has; a pair of tokens picks its own. Where no token is left
out, token i picks the columns that begin i to the left of token 0's: a slanted view of the products, with no index.

Source: He, Liu, Gao, Chen, DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2020, arXiv:2006.03654;
He, Gao, Chen, DeBERTaV3, 2021, arXiv:2111.09543.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from backlight.errors import InputError
from backlight.formats.strict_json import Bounds
from backlight.models.encoders.bert import BertShaped, layer_shapes
from backlight.models.encoders.encoder import (
    ACTIVATIONS,
    EncoderConfig,
    Epsilon,
    Layers,
    Rows,
    Shapes,
    Size,
    Trace,
    check_activation,
    check_heads,
    check_positions,
    picked,
)
from backlight.models.tokens import Batch
from backlight.ops.indexing.embedding import embedding
from backlight.ops.indexing.gather_scatter import gather
from backlight.ops.indexing.index_selection import index_select
from backlight.ops.nn.attention import scaled_dot_product_attention
from backlight.ops.nn.linear import linear
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


def relative_rows(far: int, span: int, buckets: int, farthest: int) -> np.ndarray:
    """Return the embedding that stands for each distance from −far to far, (2 · far + 1,).

    Args:
        span: how many embeddings there are for distances to one side.
        buckets: distances up to half of these have an embedding each; beyond, one stands for distances whose
            logarithms are near. Without buckets (0 or less) each distance has its own.
        farthest: the distance up to which buckets tell distances apart.
    """
    distances = np.arange(-far, far + 1)
    if buckets > 0:
        middle = buckets // 2
        sizes = np.maximum(np.abs(distances), middle).astype(np.float32)  # where it rounds up depends on float32
        steps = np.log(sizes / np.float32(middle)) / np.log(np.float32((farthest - 1) / middle))
        outer = np.ceil(steps * np.float32(middle - 1)).astype(np.int64) + middle
        distances = np.where(np.abs(distances) <= middle, distances, np.sign(distances) * outer)
    return np.clip(distances + span, 0, 2 * span - 1)


def distance_bias(
    query: Tensor,
    key: Tensor,
    distance_keys: Tensor | None,
    distance_queries: Tensor | None,
    rows: np.ndarray,
    positions: np.ndarray,
) -> Tensor:
    """Return what distances add to the scores of a text (see NOTE [Disentangled attention]).

    Shapes: query, key (heads, tokens, dim), distance_keys and distance_queries (embeddings, heads, dim)
        -> (heads, tokens, tokens)

    Args:
        distance_keys: the embeddings of distances projected as keys, scaled; None if the term is off.
        distance_queries: the same as queries; one of the two is given.
        rows: the embedding that stands for each distance, from the lowest to the highest, (2 · far + 1,).
        positions: of the tokens, in rising order.
    """
    found = None
    if distance_keys is not None:
        found = _of_pairs(query, distance_keys, rows[::-1].copy(), positions)
    if distance_queries is not None:
        looked_for = _of_pairs(key, distance_queries, rows, positions).mT
        found = looked_for if found is None else found + looked_for
    return found


def _of_pairs(tokens: Tensor, projected: Tensor, rows: np.ndarray, positions: np.ndarray) -> Tensor:
    """Return the product of each token with its distance to each other one.

    Shapes: tokens (heads, tokens, dim), projected (embeddings, heads, dim) -> (heads, tokens, tokens)

    Args:
        rows: the embedding that stands for the distance to what stands −far, …, far places from a token.
    """
    by_place = index_select(projected, 0, from_numpy(rows)).permute(1, 2, 0)
    products = tokens @ by_place  # (heads, tokens, 2 · far + 1)
    far, count = len(rows) // 2, len(positions)
    if count == far + 1:
        return _slanted(products, count)
    columns = from_numpy(far - positions[:, None] + positions)
    return gather(products, -1, columns.expand(len(products), count, count))


def _slanted(products: Tensor, count: int) -> Tensor:
    """Return columns count − 1 − i to 2 · count − 2 − i of row i; (heads, count, 2 · count − 1) -> (…, count)."""
    if count == 1:
        return products
    step = 2 * count - 2  # one less than a row: each row begins one column further left
    return products.flatten(1)[:, count - 1 : count - 1 + count * step].unflatten(1, (count, step))[..., :count]


SizeOrNone = Annotated[int, Bounds(-(2**31), le=2**31 - 1)]  # 0 or less is none


@dataclass(frozen=True)
class DebertaConfig(EncoderConfig):
    """The sizes of a DeBERTa, as `config.json` names them."""

    family: ClassVar[str] = "DeBERTa"
    prefix: ClassVar[str] = "deberta."

    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    intermediate_size: Size
    max_position_embeddings: Size = 512
    type_vocab_size: SizeOrNone = 0
    hidden_act: str = "gelu"
    layer_norm_eps: Epsilon = 1e-7
    relative_attention: bool = False
    max_relative_positions: SizeOrNone = -1
    position_buckets: SizeOrNone = -1
    pos_att_type: tuple[str, ...] = ()
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    position_biased_input: bool = True
    embedding_size: Size | None = None  # hidden_size by default
    conv_kernel_size: SizeOrNone = 0
    conv_groups: Size = 1
    conv_act: str = "tanh"
    pooler_hidden_act: str = "gelu"

    @classmethod
    def of(cls, settings: Mapping) -> Self:
        """Return the sizes that a config.json says, which may list the kinds of distances in one text."""
        kinds = settings.get("pos_att_type")
        if isinstance(kinds, str):
            kinds = kinds.lower().split("|")
        if isinstance(kinds, list | tuple):
            kinds = [kind.strip() if isinstance(kind, str) else kind for kind in kinds]
        return super().of({**settings, "pos_att_type": kinds})

    @property
    def head(self) -> tuple[str, str, str]:
        """The settings of `BertHead`: a layer, its activation, a layer."""
        return "pooler.dense", self.pooler_hidden_act, "classifier"

    @property
    def farthest(self) -> int:
        """The largest distance that has an embedding of its own."""
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


class Deberta(BertShaped):
    """DeBERTa's encoder with frozen weights (arguments as `Encoder`)."""

    joined = ("query_proj", "key_proj", "value_proj")

    @staticmethod
    def shapes_of(config: DebertaConfig) -> Shapes:
        """Return the name and shape of each weight."""
        size, wide = config.hidden_size, config.embedding_size or config.hidden_size
        shapes = {Deberta.words: (config.vocab_size, wide)}
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
        own = [_OWN[kind] for kind in config.pos_att_type if config.relative_attention and not config.share_att_key]
        shapes |= {f"{norm}.{kind}": (size,) for norm in norms for kind in ("weight", "bias")}
        return shapes | layer_shapes(config, (*Deberta.joined, *own))

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        if self.config.position_biased_input:
            check_positions(batch, self.config.max_position_embeddings)
            positions = self._weights["embeddings.position_embeddings.weight"]
            words = words + embedding(positions, from_numpy(batch.positions))
        if self.config.type_vocab_size > 0:
            types = self._weights["embeddings.token_type_embeddings.weight"]
            words = words + embedding(types, from_numpy(batch.type_ids))
        if "embeddings.embed_proj.weight" in self._weights:
            words = self._linear(words, "embeddings.embed_proj")
        return self._normalised(words, "embeddings.LayerNorm")

    def _around(self, batch: Batch) -> tuple[Tensor, list[np.ndarray]] | None:
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

    def _layer(
        self, hidden: Tensor, number: int, batch: Batch, around: tuple | None, rows: Rows, trace: Trace | None
    ) -> Tensor:
        """Run a layer for some rows, or all; the first one may have a convolution."""
        after = super()._layer(hidden, number, batch, around, rows, trace)
        if number > 0 or self.config.conv_kernel_size <= 0:
            return after
        return self._normalised(after + picked(self._convolved(hidden, batch), rows), "encoder.conv.LayerNorm")

    def _attention(
        self, hidden: Tensor, number: int, batch: Batch, distances: tuple | None, trace: Trace | None
    ) -> Tensor:
        """Let each token look at its text, by what is said and by distances; (tokens, hidden) -> the same."""
        name = f"encoder.layer.{number}.attention.self"
        heads, scale = self.config.num_attention_heads, self.config.scale
        qkv = self._linear(hidden, f"{name}.qkv").unflatten(1, (3, heads, -1)).unbind(1)
        by_text = list(zip(*(part.transpose(0, 1).split(batch.lengths, 1) for part in qkv)))  # (heads, tokens, dim)
        biases = [None] * len(by_text)
        if distances is not None:
            keys, queries = self._projected(distances[0], name)
            texts = zip(by_text, distances[1], batch.parts(batch.positions))
            biases = [distance_bias(q, k, keys, queries, rows, positions) for (q, k, _), rows, positions in texts]
        if trace is not None:
            return trace.attend(*qkv, batch.lengths, scale, None if distances is None else biases)
        seen = [scaled_dot_product_attention(*one, bias, scale=scale) for one, bias in zip(by_text, biases)]
        return cat([part.transpose(0, 1).flatten(1) for part in seen])

    def _projected(self, distances: Tensor, name: str) -> tuple[Tensor | None, Tensor | None]:
        """Return distances as keys and as queries, scaled, (distances, heads, dim); None for a term that is off."""
        found = {}
        for kind, place in (("c2p", 1), ("p2c", 0)):
            if kind not in self.config.pos_att_type:
                continue
            own = "qkv" if self.config.share_att_key else _OWN[kind]
            weight, bias = (self._weights[f"{name}.{own}.{part}"] for part in ("weight", "bias"))
            if self.config.share_att_key:
                weight, bias = (part.split(self.config.hidden_size)[place] for part in (weight, bias))
            projected = linear(distances, weight, bias) * self.config.scale
            found[kind] = projected.unflatten(1, (self.config.num_attention_heads, -1))
        return found.get("c2p"), found.get("p2c")

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


def _neighbours(batch: Batch, kernel: int) -> np.ndarray:
    """Return where the tokens around each token stand in the row: one past its end for those that there are not.

    Shapes: -> (tokens, kernel)
    """
    found, outside = [], sum(batch.lengths)
    for start, positions in zip(batch.starts, batch.parts(batch.positions)):
        half = kernel // 2
        at = np.full(positions.max(initial=0) + kernel, outside)
        at[positions + half] = start + np.arange(len(positions))
        found.append(at[positions[:, None] + np.arange(kernel)])
    return np.concatenate(found)


_OWN = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}  # what projects distances where the tokens' does not
