"""Two BERTs side by side over the same tokens: one reads query and document together, the other each of them alone.

NOTE [Two streams]
A pair is read as one row of tokens, [CLS] query [SEP] [CLS] document [SEP], so that each of its texts stands as it
would alone. In the second stream no token looks at the other text, positions are counted from 0 in both, and the
segment is 0: that is a bi-encoder's work. The joint stream reads the same row as a cross-encoder does, without the
document's [CLS]: no token looks at that one, and those after it stand a position lower. Both look up the same word
embeddings. A state is the two streams' states side by side, (tokens, 2 · hidden), and the heads of an attention are
the joint stream's and then the other's, which are zero from one text to the other. So whatever looks into an encoder
(states, attentions, their gradients) finds all of the model, and each token once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backlight.models.checkpoint import Weights
from backlight.models.encoders.bert import Bert, BertConfig, BertHead
from backlight.models.encoders.encoder import Encoder, Inner, Shapes, Trace
from backlight.models.pairs import Pair
from backlight.models.tokens import Batch
from backlight.ops.elementwise.activations import sigmoid
from backlight.ops.nn.attention import ragged_attention
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

SIMILARITY = "similarity."  # before the names of the weights of the stream that reads each text alone
COSINE, GATE, GATE_WIDTH = "cosine_weight", "gate", "gate_width"  # of `FusedHead`, (1,) each
UNSEEN = np.float32(-1e4)  # what is added to the score of a token that is not to be looked at: its share is 0


@dataclass(frozen=True, eq=False)
class Views:
    """A batch of pairs as each stream reads it.

    Args:
        joint: all tokens, at the positions of the joint stream.
        hidden: which of them the joint stream does not look at: the documents' [CLS], (tokens,).
        alone: each text as a sequence of its own: query, document, query, document …
    """

    joint: Batch
    hidden: np.ndarray
    alone: Batch

    @classmethod
    def of(cls, batch: Batch) -> "Views":
        """Return the views of a batch."""
        queries = np.add.reduceat(batch.type_ids == 0, batch.starts, dtype=np.int64)  # tokens of each query
        starts = np.asarray(batch.starts) + queries  # of the documents
        hidden = np.zeros(len(batch.ids), bool)
        hidden[starts] = True
        after = (batch.type_ids > 0) & ~hidden
        moved = np.repeat(batch.positions[starts], batch.lengths) * (batch.type_ids > 0)
        lengths = np.stack([queries, np.asarray(batch.lengths) - queries], 1).ravel().tolist()
        alone = Batch(batch.ids, np.zeros_like(batch.type_ids), batch.positions - moved, tuple(lengths))
        return cls(Batch(batch.ids, batch.type_ids, batch.positions - after, batch.lengths), hidden, alone)

    @property
    def seen(self) -> Batch:
        """The tokens that the joint stream looks at, alone."""
        kept, full = ~self.hidden, self.joint
        lengths = tuple(length - 1 for length in full.lengths)
        return Batch(full.ids[kept], full.type_ids[kept], full.positions[kept], lengths)


class TwoStreamBert(Encoder):
    """Two BERTs over the same tokens, with frozen weights (see NOTE [Two streams]).

    Args:
        config: the sizes of both.
        weights: the arrays of a checkpoint by name; those of the second stream begin with `similarity.`, and its word
            embeddings are those of the first.

    Raises:
        InputError: a weight is missing or has another shape than the sizes ask for.
    """

    words = Bert.words
    weighs_keys = True

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray]):
        plain = {name.removeprefix(config.prefix): weight for name, weight in weights.items()}
        shared = {name: weight for name, weight in plain.items() if name == self.words}
        own = {name.removeprefix(SIMILARITY): one for name, one in plain.items() if name.startswith(SIMILARITY)}
        self.config = config
        self.joint, self.apart = Bert(config, plain), Bert(config, shared | own)
        self.apart._weights[self.words] = self.joint._weights[self.words]
        own = {SIMILARITY + name: one for name, one in self.apart.parameters().items() if name != self.words}
        self._weights = self.joint.parameters() | own

    @property
    def streams_of_heads(self) -> tuple[slice, slice]:
        """Which of an attention's heads are the joint stream's, and which see each text alone."""
        heads = self.config.num_attention_heads
        return slice(heads), slice(heads, None)

    @staticmethod
    def shapes_of(config: BertConfig) -> Shapes:
        """Return the name and shape of each weight."""
        shapes = Bert.shapes_of(config)
        return shapes | {SIMILARITY + name: shape for name, shape in shapes.items() if name != Bert.words}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights by the names that checkpoints give them."""
        own = {SIMILARITY + name: one for name, one in self.apart.state_dict().items() if name != self.words}
        return self.joint.state_dict() | own

    def _embedded(self, batch: Batch, words: Tensor) -> Tensor:
        views = Views.of(batch)
        return cat([self.joint._embedded(views.joint, words), self.apart._embedded(views.alone, words)], 1)

    def _around(self, batch: Batch) -> Views:
        """Return the batch as each stream reads it."""
        return Views.of(batch)

    def _attention(self, hidden: Tensor, number: int, batch: Batch, around: Views, trace: Inner) -> Tensor:
        heads, name = self.config.num_attention_heads, f"encoder.layer.{number}.attention.self.qkv"
        streams = zip((self.joint, self.apart), self._streams(hidden))
        joint, apart = (stream._linear(states, name) for stream, states in streams)
        if isinstance(trace, Trace):
            return self._traced(joint, apart, around, trace)
        logs = trace and trace.logs
        unseen = from_numpy(np.where(around.hidden, UNSEEN, np.float32(0)))
        seen = ragged_attention(joint, unseen if logs is None else unseen + logs, batch.lengths, heads)
        return cat([seen, ragged_attention(apart, logs, around.alone.lengths, heads)], 1)

    def _traced(self, joint: Tensor, apart: Tensor, around: Views, trace: Trace) -> Tensor:
        """Return what all heads see, step by step; (tokens, 3 · hidden) of each stream -> (tokens, 2 · hidden)."""
        heads, dim = self.config.num_attention_heads, self.config.hidden_size // self.config.num_attention_heads
        both = cat([part.unflatten(1, (3, heads, dim)) for part in (joint, apart)], 2)
        queries = around.alone.lengths[0::2]
        biases = [from_numpy(_bias(heads, query, length)) for query, length in zip(queries, around.joint.lengths)]
        return trace.attend(*both.unbind(1), around.joint.lengths, dim**-0.5, biases)

    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        parts = zip((self.joint, self.apart), self._streams(seen), self._streams(hidden))
        return cat([stream._after(*own, number) for stream, *own in parts], 1)

    def _streams(self, states: Tensor) -> Sequence[Tensor]:
        """Cut states into those of the two streams; (tokens, 2 · hidden) -> (tokens, hidden) twice."""
        return states.split(self.config.hidden_size, 1)


class FusedHead(BertHead):
    """BERT's head over the joint stream, and how its logit and the cosine become a score; arguments as `BertHead`."""

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray], labels: int):
        super().__init__(config, weights, labels)
        taken = Weights(weights, "fused reranker").take_all(dict.fromkeys((COSINE, GATE, GATE_WIDTH), (1,)))
        self._weights |= {name: from_numpy(one) for name, one in taken.items()}

    def cosine_term(self, logits: Tensor, cosines: Tensor) -> Tensor:
        """Return what is added to logits, weight · cosine · sigmoid((logit − gate) / width); (pairs,) each."""
        weight, gate, width = (self._weights[name] for name in (COSINE, GATE, GATE_WIDTH))
        return weight * cosines * sigmoid((logits - gate) / width)


def pair_apart(pair: Pair) -> Pair:
    """Return a pair with each text as a sequence of its own."""
    query = int((pair.type_ids == 0).sum())
    positions = np.concatenate([pair.positions[:query], pair.positions[query:] - pair.positions[query]])
    lengths = query, len(pair) - query
    return replace(pair, type_ids=np.zeros_like(pair.type_ids), positions=positions, lengths=lengths)


def _bias(heads: int, query: int, tokens: int) -> np.ndarray:
    """Return what is added to the scores of a pair's heads, (2 · heads, tokens, tokens).

    Args:
        query: how many tokens the query has; the next one is the document's [CLS].
    """
    bias = np.zeros((2 * heads, tokens, tokens), np.float32)
    bias[:heads, :, query] = bias[heads:, :query, query:] = bias[heads:, query:, :query] = UNSEEN
    return bias
