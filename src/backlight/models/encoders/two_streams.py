"""Two BERTs side by side over the same tokens: one reads query and document together, the other each of them alone.

NOTE [Two streams]
A pair is read as one sequence, [CLS] query [SEP] [CLS] document [SEP], so that each of its texts stands as it would
alone. The joint stream sees all of it. In the stream of each text alone no token looks at the other text, positions are
counted from 0 in both, and the segment is 0: that is a bi-encoder's work, in the same row of tokens. Both look up the
same word embeddings. A state is the two streams' states, one after the other, (tokens, 2 · hidden), and the heads of an
attention are the joint stream's and then the other's, which are zero from one text to the other. So whatever looks into
an encoder (states, attentions, their gradients) finds all of the model, and each token once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from backlight.models.checkpoint import Weights
from backlight.models.encoders.bert import Bert, BertConfig, BertHead
from backlight.models.encoders.encoder import Encoder, Inner, Shapes, Trace
from backlight.models.pairs import Pair
from backlight.models.tokens import Batch
from backlight.ops.shape.joining import cat
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

SIMILARITY = "similarity."  # before the names of the weights of the stream that reads each text alone
COSINE_WEIGHT = "cosine_weight"  # what a score counts the cosine by, (1,)
APART = np.float32(-np.inf)  # what is added to a score between texts that do not see each other


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

    @property
    def streams_of_heads(self) -> tuple[slice, slice]:
        """Which of an attention's heads are the joint stream's, and which see each text alone."""
        heads = self.config.num_attention_heads
        return slice(heads), slice(heads, None)

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray]):
        plain = {name.removeprefix(config.prefix): weight for name, weight in weights.items()}
        shared = {name: weight for name, weight in plain.items() if name == self.words}
        own = {name.removeprefix(SIMILARITY): one for name, one in plain.items() if name.startswith(SIMILARITY)}
        self.config = config
        self.joint, self.apart = Bert(config, plain), Bert(config, shared | own)
        self.apart._weights[self.words] = self.joint._weights[self.words]
        own = {SIMILARITY + name: one for name, one in self.apart.parameters().items() if name != self.words}
        self._weights = self.joint.parameters() | own

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
        return cat([self.joint._embedded(batch, words), self.apart._embedded(each_alone(batch), words)], 1)

    def _around(self, batch: Batch) -> Batch:
        """Return the batch as the second stream reads it."""
        return each_alone(batch)

    def _attention(self, hidden: Tensor, number: int, batch: Batch, around: Batch, trace: Inner) -> Tensor:
        joint, apart = self._streams(hidden)
        if isinstance(trace, Trace):
            return self._traced(joint, apart, number, around, trace)
        own = self.apart._attention(apart, number, around, None, trace)
        return cat([self.joint._attention(joint, number, batch, None, trace), own], 1)

    def _traced(self, joint: Tensor, apart: Tensor, number: int, around: Batch, trace: Trace) -> Tensor:
        """Return what all heads of both streams see, step by step; (tokens, hidden) twice -> (tokens, 2 · hidden)."""
        heads = self.config.num_attention_heads
        dim, name = self.config.hidden_size // heads, f"encoder.layer.{number}.attention.self.qkv"
        products = self.joint._linear(joint, name), self.apart._linear(apart, name)
        both = cat([part.unflatten(1, (3, heads, dim)) for part in products], 2)
        lengths = np.reshape(around.lengths, (-1, 2))
        biases = [from_numpy(_bias(heads, *map(int, own))) for own in lengths]
        return trace.attend(*both.unbind(1), tuple(lengths.sum(1).tolist()), dim**-0.5, biases)

    def _after(self, seen: Tensor, hidden: Tensor, number: int) -> Tensor:
        parts = zip((self.joint, self.apart), self._streams(seen), self._streams(hidden))
        return cat([stream._after(*own, number) for stream, *own in parts], 1)

    def _streams(self, states: Tensor) -> Sequence[Tensor]:
        """Cut states into those of the two streams; (tokens, 2 · hidden) -> (tokens, hidden) twice."""
        return states.split(self.config.hidden_size, 1)


class ResidualHead(BertHead):
    """BERT's head over the joint stream, with the weight of the cosine beside it; arguments as `BertHead`."""

    def __init__(self, config: BertConfig, weights: Mapping[str, np.ndarray], labels: int):
        super().__init__(config, weights, labels)
        taken = Weights(weights, "residual reranker").take(COSINE_WEIGHT, 1)
        self._weights[COSINE_WEIGHT] = from_numpy(taken)

    @property
    def cosine_weight(self) -> Tensor:
        """What the cosine counts, (1,)."""
        return self._weights[COSINE_WEIGHT]


def each_alone(batch: Batch) -> Batch:
    """Return a batch of pairs with each text as a sequence of its own: query, document, query, document …"""
    queries = np.add.reduceat(batch.type_ids == 0, batch.starts, dtype=np.int64)  # tokens of each query
    starts = np.asarray(batch.starts) + queries  # of the documents
    moved = np.repeat(batch.positions[starts], batch.lengths) * (batch.type_ids > 0)
    lengths = np.stack([queries, np.asarray(batch.lengths) - queries], 1).ravel().tolist()
    return Batch(batch.ids, np.zeros_like(batch.type_ids), batch.positions - moved, tuple(lengths))


def pair_apart(pair: Pair) -> Pair:
    """Return a pair with each text as a sequence of its own."""
    query = int((pair.type_ids == 0).sum())
    positions = np.concatenate([pair.positions[:query], pair.positions[query:] - pair.positions[query]])
    lengths = query, len(pair) - query
    return replace(pair, type_ids=np.zeros_like(pair.type_ids), positions=positions, lengths=lengths)


def _bias(heads: int, query: int, document: int) -> np.ndarray:
    """Return what is added to the scores of a pair's heads, (2 · heads, tokens, tokens)."""
    bias = np.zeros((2 * heads, query + document, query + document), np.float32)
    bias[heads:, :query, query:] = bias[heads:, query:, :query] = APART
    return bias
