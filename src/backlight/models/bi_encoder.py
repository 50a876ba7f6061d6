"""A bi-encoder: query and document are embedded apart, and the cosine of the two embeddings is the score.

NOTE [Distinct sequences]
A sequence's embedding depends on its tokens, their segments and positions, and on nothing else in the batch. So what
many pairs share is run once: the query of a ranking, or the document, where words of the query are left out. Scores are
those of each pair alone, but for the rounding of products over other batches. With embeddings of their own
(`inputs_embeds`) sequences are run as they are given.

Source: Reimers, Gurevych, Sentence-BERT, 2019, arXiv:1908.10084.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.models.encoders.encoder import Cut, Encoder, KeyWeights, Trace
from backlight.models.pairs import Pair, PairBatch, SeparateReader
from backlight.models.pooling import READ_ALONE, pooled, weights_of
from backlight.models.scorer import Progress, no_progress
from backlight.models.scoring import PairScorer, finite_scores, passes
from backlight.models.tokens import Batch, Tokenizer
from backlight.tensor.tensor import Tensor

TEXTS_A_BLOCK = 512  # texts that are tokenised before the first of them is embedded
TOKENS_COMPARED = 1 << 17  # of pairs whose sequences are compared, so that each distinct one runs once


@dataclass(frozen=True, eq=False)
class BiEncoder(PairScorer):
    """Scores a document for a query by the cosine of their pooled embeddings.

    Args:
        name: what the model is called in results.
        encoder: gives each token's last hidden state.
        tokenizer: reads documents.
        pooling: how the states of a text become its embedding, a key of `POOLINGS` or `READ_ALONE`.
        query_tokenizer: reads queries, if they have a prompt of their own.
    """

    name: str
    encoder: Encoder
    tokenizer: Tokenizer
    pooling: str = "mean"
    query_tokenizer: Tokenizer | None = None

    highest_score = 1.0  # of a cosine
    activation = "identity"

    @property
    def score_name(self) -> str:
        """What a score is."""
        return f"cosine of {self.pooling}-pooled embeddings"

    @property
    def _query_tokenizer(self) -> Tokenizer:
        return self.query_tokenizer or self.tokenizer

    @property
    def reader(self) -> SeparateReader:
        """What reads pairs of texts."""
        return SeparateReader(self.tokenizer, self.query_tokenizer)

    def embed_texts(
        self, batch: Batch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return each text's embedding, of length 1.

        Shapes: inputs_embeds (tokens, hidden) -> (texts, hidden)
        """
        if self.pooling in READ_ALONE:
            return unit(self.encoder(batch, inputs_embeds, READ_ALONE[self.pooling](batch), trace))
        return unit(pooled(self.encoder(batch, inputs_embeds, trace=trace), batch, self.pooling))

    def pair_scores(
        self, batch: Batch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return the score of each pair in a batch query, document, query, document …, in the graph; (pairs,)."""
        return cosines(self.embed_texts(batch, inputs_embeds, trace))

    def score_states(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the score of each pair from the last state of each token; (tokens, hidden) -> (pairs,)."""
        return cosines(unit(pooled(states, batch, self.pooling)))

    def read_weights(self, batch: Batch) -> list[np.ndarray]:
        """Return how much of each token's last state is read, one row for each query and document."""
        return weights_of(batch, self.pooling)

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the score of each pair, without recording (see NOTE [Distinct sequences])."""
        if inputs_embeds is not None:
            return super().score(batch, inputs_embeds)
        sequences, numbers = distinct_sequences(batch.pairs)
        return finite_scores(_compared(self._embeddings(sequences), numbers), batch.names)

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the score of each pair; distinct sequences of many pairs run some thousand tokens at a time.

        What is held are the sequences of `TOKENS_COMPARED` tokens of pairs, and an embedding for each.
        """
        found = [self._scores_of(some, progress) for some in passes(pairs, tokens=TOKENS_COMPARED)]
        return np.concatenate(found) if found else np.empty(0, np.float32)

    def _scores_of(self, pairs: Sequence[Pair], progress: Progress) -> np.ndarray:
        sequences, numbers = distinct_sequences(pairs)
        needed = np.maximum.accumulate(numbers.max(axis=1, initial=-1)) + 1  # sequences that pairs up to each one need
        embeddings, embedded, done = [], 0, 0
        for some in passes(sequences, tokens=self.tokens_a_pass):
            embeddings.append(self._embeddings(some))
            embedded += len(some)
            ready = int(np.searchsorted(needed, embedded, side="right"))
            progress(ready - done)
            done = ready
        return finite_scores(_compared(np.concatenate(embeddings), numbers), [pair.name for pair in pairs])

    def _embeddings(self, sequences: "Sequence[TokenSequence]") -> np.ndarray:
        """Return the embedding of each sequence, of length 1, without recording; (sequences, hidden)."""
        ids, type_ids, positions = np.concatenate([sequence.tokens for sequence in sequences], axis=1)
        with no_grad():
            return self.embed_texts(Batch(ids, type_ids, positions, tuple(map(len, sequences)))).numpy()

    def embeddings_of(
        self, texts: Sequence[str], progress: Progress = no_progress, *, queries: bool = False
    ) -> np.ndarray:
        """Return the embedding of each text, of length 1, without recording; (texts, hidden).

        Args:
            queries: whether the texts are queries, not documents.

        Raises:
            InputError: one is not finite.
        """
        found = []
        tokenizer = self._query_tokenizer if queries else self.tokenizer
        for start in range(0, len(texts), TEXTS_A_BLOCK):
            for some in passes(tokenizer.all_of(texts[start : start + TEXTS_A_BLOCK])):
                with no_grad():
                    found.append(self.embed_texts(Batch.of(some)).numpy())
                progress(len(some))
        embeddings = np.concatenate(found) if found else np.empty((0, 0), np.float32)
        finite_scores(embeddings.sum(axis=1), [f"text {number}" for number in range(1, len(embeddings) + 1)])
        return embeddings

    def rank_scores(self, query: str, documents: Sequence[str], progress: Progress = no_progress) -> np.ndarray:
        """Return the score of each document for a query, which is embedded once."""
        found = []
        with no_grad():
            (query_embedding,) = self.embed_texts(Batch.of([self._query_tokenizer(query)])).numpy()
            for some in passes(self.tokenizer.all_of(documents)):
                found.append(self.embed_texts(Batch.of(some)).numpy() @ query_embedding)
                progress(len(some))
        scores = np.concatenate(found) if found else np.empty(0, np.float32)
        return finite_scores(scores, [f"document {number}" for number in range(1, len(scores) + 1)])


@dataclass(frozen=True, eq=False)
class TokenSequence:
    """A text as the encoder is given it: rows of ids, segments and positions, (3, tokens)."""

    tokens: np.ndarray

    def __len__(self) -> int:
        return self.tokens.shape[1]


def distinct_sequences(pairs: Sequence[Pair], sides: Sequence[int] = (0, 1)) -> tuple[list[TokenSequence], np.ndarray]:
    """Return the distinct sequences of pairs in the order of their first pair, and the numbers of each pair's.

    Args:
        sides: which sequences of a pair: the query's (0), the document's (1), or both.

    Shapes: numbers (pairs, sides)
    """
    sequences, known, numbers = [], {}, np.empty((len(pairs), len(sides)), np.int64)
    for row, pair in enumerate(pairs):
        tokens = np.stack([pair.ids, pair.type_ids, pair.positions])
        parts = np.split(tokens, [pair.lengths[0]], axis=1)
        for column, side in enumerate(sides):
            part = parts[side]
            numbers[row, column] = number = known.setdefault(part.tobytes(), len(sequences))
            if number == len(sequences):
                sequences.append(TokenSequence(part))
    return sequences, numbers


def _compared(embeddings: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of embeddings of length 1; (sequences, hidden), (pairs, 2) -> (pairs,)."""
    return (embeddings[numbers[:, 0]] * embeddings[numbers[:, 1]]).sum(axis=1)


def unit(embeddings: Tensor) -> Tensor:
    """Bring each text's embedding to length 1; (texts, hidden) -> the same."""
    return embeddings / embeddings.norm(dim=1, keepdim=True)


def cosines(embeddings: Tensor) -> Tensor:
    """Compare queries and documents; (texts, hidden) of length 1 -> (pairs,)."""
    return (embeddings[0::2] * embeddings[1::2]).sum(1)
