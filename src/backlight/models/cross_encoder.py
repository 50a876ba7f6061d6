"""A cross-encoder: query and document are read together, and a head turns what was read into one logit.

Source: Nogueira, Cho, Passage Re-ranking with BERT, 2019, arXiv:1901.04085.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from backlight.models.encoders.encoder import Cut, Encoder, KeyWeights, Trace
from backlight.models.pairs import PairBatch, PairReader
from backlight.models.pooling import READ_ALONE, pooled, weights_of
from backlight.models.prompts import PromptReader
from backlight.models.scoring import PairScorer
from backlight.models.tokens import Tokenizer
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class CrossEncoder(PairScorer):
    """Scores a document for a query by a logit.

    Args:
        name: what the model is called in results.
        encoder: gives each token's last hidden state.
        head: turns the states that it reads into logits, (pairs, labels).
        reader: reads pairs of texts.
        label: which logit is the score.
        activation: what turns a logit into the score that is shown, a key of `ACTIVATIONS`.
    """

    name: str
    encoder: Encoder
    head: Callable[[Tensor], Tensor]
    reader: PairReader | PromptReader
    label: int = 0
    activation: str = "sigmoid"
    score_name: str = "logit"

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into tokens."""
        return self.reader.tokenizer

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return the logit of each pair, in the graph; (pairs,)."""
        if self.head.reads not in READ_ALONE:
            return self.score_states(self.encoder(batch, inputs_embeds, trace=trace), batch)
        return self._logits(self.encoder(batch, inputs_embeds, READ_ALONE[self.head.reads](batch), trace))

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the logit of each pair from the last state of each token; (tokens, hidden) -> (pairs,)."""
        return self._logits(pooled(states, batch, self.head.reads))

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state the head reads, one row a pair; each sums to 1."""
        return weights_of(batch, self.head.reads)

    def _logits(self, states: Tensor) -> Tensor:
        """Return what the head makes of the states that it reads; (pairs, hidden) -> (pairs,)."""
        return self.head(states)[:, self.label]
