"""A bi-encoder: query and document are embedded apart, and the cosine of the two embeddings is the score.

Source: Reimers, Gurevych, Sentence-BERT, 2019, arXiv:1908.10084.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.models.encoders.encoder import Encoder, Trace
from backlight.models.pairs import ApartReader
from backlight.models.pooling import READ_ALONE, pooled, weights_of
from backlight.models.scorer import Progress, no_progress
from backlight.models.scoring import PairScorer, finite_scores, passes
from backlight.models.tokens import Batch, Tokenizer
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class BiEncoder(PairScorer):
    """Scores a document for a query by the cosine of their pooled embeddings.

    Args:
        name: what the model is called in results.
        encoder: gives each token's last hidden state.
        tokenizer: reads texts.
        pooling: how the states of a text become its embedding, a key of `POOLINGS` or `READ_ALONE`.
    """

    name: str
    encoder: Encoder
    tokenizer: Tokenizer
    pooling: str = "mean"

    highest_score = 1.0  # of a cosine
    activation = "identity"

    @property
    def score_name(self) -> str:
        """What a score is."""
        return f"cosine of {self.pooling}-pooled embeddings"

    @property
    def reader(self) -> ApartReader:
        """What reads pairs of texts."""
        return ApartReader(self.tokenizer)

    def embed_texts(self, batch: Batch, inputs_embeds: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        """Return each text's embedding, of length 1.

        Shapes: inputs_embeds (tokens, hidden) -> (texts, hidden)
        """
        if self.pooling in READ_ALONE:
            return _unit(self.encoder(batch, inputs_embeds, READ_ALONE[self.pooling](batch), trace))
        return _unit(pooled(self.encoder(batch, inputs_embeds, trace=trace), batch, self.pooling))

    def pair_scores(self, batch: Batch, inputs_embeds: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        """Return the score of each pair in a batch query, document, query, document …, in the graph; (pairs,)."""
        return _cosines(self.embed_texts(batch, inputs_embeds, trace))

    def score_states(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the score of each pair from the last state of each token; (tokens, hidden) -> (pairs,)."""
        return _cosines(_unit(pooled(states, batch, self.pooling)))

    def read_weights(self, batch: Batch) -> list[np.ndarray]:
        """Return how much of each token's last state is read, one row for each query and document."""
        return weights_of(batch, self.pooling)

    def rank_scores(self, query: str, documents: Sequence[str], progress: Progress = no_progress) -> np.ndarray:
        """Return the score of each document for a query, which is embedded once."""
        found = []
        with no_grad():
            (query_embedding,) = self.embed_texts(Batch.of([self.tokenizer(query)])).numpy()
            for some in passes(self.tokenizer.all_of(documents)):
                found.append(self.embed_texts(Batch.of(some)).numpy() @ query_embedding)
                progress(len(some))
        scores = np.concatenate(found) if found else np.empty(0, np.float32)
        return finite_scores(scores, [f"document {number}" for number in range(1, len(scores) + 1)])


def _unit(embeddings: Tensor) -> Tensor:
    """Bring each text's embedding to length 1; (texts, hidden) -> the same."""
    return embeddings / embeddings.norm(dim=1, keepdim=True)


def _cosines(embeddings: Tensor) -> Tensor:
    """Compare queries and documents; (texts, hidden) of length 1 -> (pairs,)."""
    return (embeddings[0::2] * embeddings[1::2]).sum(1)
