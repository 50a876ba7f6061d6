"""What explanations need of a model that scores pairs, in NumPy: scores, their gradients, the inside of each layer.

NOTE [A scorer]
A `Scorer` is whatever has these attributes and methods: nothing is inherited or registered. All scorers read, score and
cut long documents into windows, so words can be left out of any. A model that cannot do one of the rest (embeddings of
its words, gradients, attentions) raises an InputError there, which says so. A `GraphScorer` runs on backlight's own
engine: its scores are tensors in a graph, which gives second derivatives and scores of states between layers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from backlight.models.encoders.encoder import Cut, Encoder, Trace
from backlight.models.pairs import Pair, PairBatch
from backlight.models.tokens import Tokenizer
from backlight.tensor.tensor import Tensor

Texts = tuple[str, str]  # a query and a document
Progress = Callable[[float], None]  # called with the number of things newly done; a part of one where it is long


PYTORCH = "PyTorch"  # an `Execution.engine`


def no_progress(done: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, eq=False)
class Inside:
    """What went on inside a model for a batch of pairs, and how strongly each score reacts to it.

    Args:
        scores: raw scores, (pairs,).
        states: the hidden states that the first layer was given, then those after each layer, (tokens, hidden).
        attentions: for each layer the attention of each sequence, (heads, queries, keys).
        state_slopes: ∂score/∂state in the order of `states`; None where they were not requested.
        attention_slopes: ∂score/∂attention in the order of `attentions`.
        joint_heads: how many heads of each attention, the first ones, may look from one text to the other; None: all.
    """

    scores: np.ndarray
    states: list[np.ndarray]
    attentions: list[tuple[np.ndarray, ...]]
    state_slopes: list[np.ndarray] | None = None
    attention_slopes: list[tuple[np.ndarray, ...]] | None = None
    joint_heads: int | None = None


@dataclass(frozen=True)
class TokenMatch:
    """A token of a query and the document's token that it is most similar to.

    Args:
        query: its place in the pair; None for a token that the query was filled up with.
        document: the place of the other.
        value: what it brings to the score.
    """

    query: int | None
    document: int
    value: float


@dataclass(frozen=True, eq=False)
class MaskGradients:
    """How strongly each score of a batch of pairs reacts to the weight of each token in all attentions, at weight 1.

    Args:
        scores: raw scores, (pairs,).
        gradients: ∂score/∂weight, (tokens,).
        first, last: the states that the first layer is given, and those after the last layer, (tokens, hidden). The
            last are None where the score reads one token's state of each text.
        first_slopes, last_slopes: ∂score/∂state of both.
    """

    scores: np.ndarray
    gradients: np.ndarray
    first: np.ndarray
    first_slopes: np.ndarray
    last: np.ndarray | None
    last_slopes: np.ndarray | None

    @classmethod
    def of(cls, inside: Inside) -> Self:
        """Return those of attentions that were computed step by step, with their slopes."""
        texts = zip(*inside.attentions), zip(*inside.attention_slopes)
        gradients = [sum(map(_of_attention, *layers)) for layers in zip(*texts)]
        ends = inside.states[0], inside.state_slopes[0], inside.states[-1], inside.state_slopes[-1]
        return cls(inside.scores, np.concatenate(gradients), *ends)


def _of_attention(attention: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return one layer's part for a text, Σ A · (∂score/∂A − Σ A · ∂score/∂A).

    Shapes: (heads, queries, keys), the same -> (keys,)
    """
    product = attention * slopes
    return product.sum((0, 1), np.float64) - np.einsum("hqk,hq->k", attention, product.sum(2))


@dataclass(frozen=True, eq=False)
class StateGradients:
    """The states after one layer for a batch of pairs, and how strongly each score reacts to them.

    Args:
        layer: after which layer; 0 for what the first layer is given.
        layers: how many there are.
        scores: raw scores, (pairs,).
        states: (tokens, hidden).
        gradients: ∂score/∂state, (tokens, hidden).
    """

    layer: int
    layers: int
    scores: np.ndarray
    states: np.ndarray
    gradients: np.ndarray


@dataclass(frozen=True)
class Execution:
    """How a model ran that backlight's engine on the processor does not run.

    Args:
        engine: what computed: "PyTorch", or "backlight on CUDA".
        device: where.
        dtype: in what.
        sequences: "padded, in buckets of similar length", or "end to end, without padding".
        compiled: whether `torch.compile` compiled its layers.
        compared: where gradients in half precision are shown, of how many pairs they were compared with those in
            float32: 0, if there was no memory for that.
        deviation: the largest ‖g − g₃₂‖ / ‖g₃₂‖ of these pairs, g₃₂ in float32.
    """

    engine: str
    device: str
    dtype: str
    sequences: str
    compiled: bool = False
    compared: int | None = None
    deviation: float | None = None


class Scorer(Protocol):
    """A model whose scores can be explained (see NOTE [A scorer]).

    Attributes:
        name: what the model is called in results.
        score_name: what a score is.
        max_tokens: how many tokens of a pair, or of a text, the model reads.
        highest_score: where no gradient can be; None if a score has no bound.
        tokens_a_pass: how many tokens of pairs the model is best given at once.
        rounding: how far scores of one pair may differ between batches, in units of the score, or of its size above 1.
        tokenizer: what cuts texts into tokens.
    """

    name: str
    score_name: str
    max_tokens: int
    highest_score: float | None
    tokens_a_pass: int
    rounding: float
    tokenizer: Tokenizer

    def read(self, pairs: Sequence[Texts]) -> list[Pair]:
        """Return pairs of query and document as the model reads them."""

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document; one, if all of it fits.

        Each is made when it is read (see NOTE [Long texts] in models/tokens.py). A query that is longer than half of
        what the model reads is cut there.

        Args:
            stride: how many tokens of the document each window begins after the one before; half a window by default.

        Raises:
            InputError: a prompt leaves no room, or the stride is not between 1 and a window.
        """

    def activate(self, scores: np.ndarray) -> np.ndarray:
        """Return raw scores after the model's activation, as they are shown: for example as probabilities."""

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score (logit) of each pair, by which documents are ranked.

        Args:
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).

        Shapes: -> (pairs,)

        Raises:
            InputError: a score is not finite, or the model takes no word embeddings.
        """

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the raw score of each pair, some thousand tokens at a time.

        Args:
            progress: called with the number of pairs done since the last call.
        """

    def rank_scores(self, query: str, documents: Sequence[str], progress: Progress = no_progress) -> np.ndarray:
        """Return the raw score of each document for a query; arguments as `scores_of`."""

    def execution(self, pairs: Sequence[Pair], *, gradients: bool) -> Execution | None:
        """Return how pairs are run; None for backlight's engine on the processor.

        Args:
            gradients: whether gradients are shown, which in half precision are compared with float32 on some pairs.
        """

    def embed(self, batch: PairBatch) -> np.ndarray:
        """Return the word embeddings of a batch; -> (tokens, hidden)."""

    def first_states(self, batch: PairBatch) -> np.ndarray:
        """Return the states that the first layer is given, of words at their positions; -> (tokens, hidden).

        Raises:
            InputError: only the model's own call puts words at their positions.
        """

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens.

        Shapes: -> (pairs,), (tokens, hidden)

        Raises:
            InputError: the model takes no word embeddings.
            RuntimeError: the score does not depend on the word embeddings.
        """

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return hidden states and attentions of every layer, and with `slopes` the gradients of the scores for them.

        Raises:
            InputError: the model shows no attentions, or its layers work on other tokens than are read.
            RuntimeError: the score does not depend on what went on inside.
        """

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions.

        Raises:
            InputError: the model shows no attentions, or its layers work on other tokens than are read.
            RuntimeError: the score does not depend on what went on inside.
        """

    def state_gradients(self, batch: PairBatch, layer: int | None = None) -> StateGradients:
        """Return the states after one layer and the scores' gradients for them: one forward, one backward down to them.

        Args:
            layer: after which layer; 0 for what the first layer is given; by default half of the layers, rounded down.

        Raises:
            InputError: there is no such layer, or the model's layers work on other tokens than are read.
            RuntimeError: the score does not depend on these states.
        """

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state the score reads: a row for each sequence, which sums to 1.

        Raises:
            InputError: the score is not a function of such a sum, as where the model reads by maxima.
        """

    def baseline(self, name: str) -> np.ndarray:
        """Return a word embedding that stands for no word in particular, (hidden,).

        Args:
            name: `zero`, `pad` and `mask` (the tokens that the tokenizer has for these ends), or `average`, the mean of
                the vocabulary.

        Raises:
            InputError: there is no such baseline, or the tokenizer has no such token.
        """


class GraphScorer(Scorer, Protocol):
    """A scorer on backlight's own engine, whose scores are tensors in a graph.

    Attributes:
        encoder: gives each token's last hidden state.
    """

    encoder: Encoder

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | None = None
    ) -> Tensor:
        """Return the raw score of each pair, in the graph.

        Args:
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).
            trace: is filled with what went on inside, or says where gradients end.

        Shapes: -> (pairs,)
        """

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the raw score of each pair from the last state of each token; (tokens, hidden) -> (pairs,)."""

    def curvatures(
        self, batch: PairBatch, directions: Iterable[np.ndarray], inputs_embeds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, Iterator[np.ndarray]]:
        """Return scores, their gradients, and the product of their second derivatives with each direction.

        Each product is made when the iterator reaches it.

        Args:
            directions: changes of the word embeddings, each (tokens, hidden).
            inputs_embeds: where derivatives are taken, (tokens, hidden); at the words' own embeddings by default.

        Shapes: -> (pairs,), (tokens, hidden), an iterator of (tokens, hidden)

        Raises:
            RuntimeError: the score does not depend on the word embeddings.
        """

    def build_up(self, batch: PairBatch) -> np.ndarray:
        """Return the scores that the states after each layer would get were that layer the last.

        Shapes: -> (layers + 1, pairs); the first are those of what the first layer was given, the last the raw scores
        """
