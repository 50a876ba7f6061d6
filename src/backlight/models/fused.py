"""A cross-encoder's logit and the cosine of two embeddings, fused into one score.

NOTE [The fused score]
    score = logit + weight · cosine · sigmoid((logit − gate) / width)
The cosine is that of the bi-encoder that the cross-encoder's training started from, unchanged. On kinds of text that
training saw the logit orders documents better than the cosine; on others it may be worse, and there their sum is seldom
worse than the cosine. What the cross-encoder is sure is no answer (a logit below the gate: a text that only echoes the
query has a cosine near 1) gains nothing by it. Every explanation explains the whole score.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.models.bi_encoder import TOKENS_COMPARED, BiEncoder, cosines, unit
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.encoder import Cut, KeyWeights, Trace, picked
from backlight.models.encoders.two_streams import FusedHead, TwoStreamBert, Views, pair_apart
from backlight.models.pairs import Pair, PairBatch
from backlight.models.pooling import READ_ALONE, gradient_of_pooling, pooled, weights_of
from backlight.models.scorer import Inside, MaskGradients, Progress, no_progress
from backlight.models.scoring import finite_scores, passes
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class FusedCrossEncoder(CrossEncoder):
    """Scores a document by a logit and a cosine (see NOTE [The fused score]); arguments as `CrossEncoder`."""

    encoder: TwoStreamBert
    head: FusedHead

    @property
    def similarity(self) -> BiEncoder:
        """The bi-encoder whose cosine is a part of the score, which can search by itself."""
        return BiEncoder(self.name, self.encoder.apart, self.tokenizer)

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return the score of each pair, in the graph; (pairs,)."""
        if trace is not None:
            return self.score_states(self.encoder(batch, inputs_embeds, trace=trace), batch)
        views = Views.of(batch)
        if inputs_embeds is None and not self._similarity_learns:
            found = from_numpy(self.cosines_of(batch))
        else:
            found = cosines(self.similarity.embed_texts(views.alone, inputs_embeds))
        logits = self.logits_of(views, inputs_embeds)
        return logits + self.head.cosine_term(logits, found)

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the score of each pair from the last states of both streams; (tokens, 2 · hidden) -> (pairs,)."""
        joint, apart = states.split(self.encoder.config.hidden_size, 1)
        found = cosines(unit(pooled(apart, Views.of(batch).alone, self.similarity.pooling)))
        logits = self._logits(pooled(joint, batch, self.head.reads))
        return logits + self.head.cosine_term(logits, found)

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state is read, one row a pair: half by the logit, half by the cosine."""
        apart = batch.parts(np.concatenate(weights_of(Views.of(batch).alone, self.similarity.pooling)))
        return [logit / 2 + cosine / 4 for logit, cosine in zip(weights_of(batch, self.head.reads), apart)]

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the score of each pair, without recording; a text that several share is embedded once."""
        if inputs_embeds is not None:
            return super().score(batch, inputs_embeds)
        return finite_scores(sum(self.parts_of(batch)), batch.names)

    def parts_of(self, batch: PairBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the two parts of each score: the cross-encoder's logit and what the cosine brings; (pairs,) each."""
        return self._parts(batch, self.cosines_of(batch))

    def cosines_of(self, batch: PairBatch) -> np.ndarray:
        """Return the cosine of each pair, without recording; (pairs,)."""
        return self.similarity.score(PairBatch.of([pair_apart(pair) for pair in batch.pairs]))

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the score of each pair; a text that many share is embedded once (see NOTE [Distinct sequences])."""
        found: list[float] = []
        for block in passes(pairs, tokens=TOKENS_COMPARED):
            near, done = self.similarity.scores_of([pair_apart(pair) for pair in block]), 0
            for some in passes(block, tokens=self.tokens_a_pass):
                batch = PairBatch.of(some)
                scores = sum(self._parts(batch, near[done : done + len(some)]))
                found += finite_scores(scores, batch.names).tolist()
                done += len(some)
                progress(len(some))
        return np.array(found, np.float32)

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return what went on in both streams (see NOTE [Two streams] in models/encoders/two_streams.py)."""
        return replace(super().inside(batch, slopes=slopes), joint_heads=self.encoder.config.num_attention_heads)

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions, and in the mean."""
        found = super().mask_gradients(batch)
        size = self.encoder.config.hidden_size
        read = gradient_of_pooling(Views.of(batch).alone, found.last[:, size:], found.last_slopes[:, size:])
        return replace(found, gradients=found.gradients + read, last=None, last_slopes=None)

    def logits_of(self, views: Views, inputs_embeds: Tensor | None = None) -> Tensor:
        """Return what the cross-encoder alone says, in the graph; (pairs,)."""
        batch, rows = views.seen, np.flatnonzero(~views.hidden)
        words = None if inputs_embeds is None else picked(inputs_embeds, rows)
        return self._logits(self.encoder.joint(batch, words, READ_ALONE[self.head.reads](batch)))

    def _parts(self, batch: PairBatch, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the two parts of each score, given the cosines; (pairs,) -> the same twice."""
        with no_grad():
            logits = self.logits_of(Views.of(batch))
            return logits.numpy(), self.head.cosine_term(logits, from_numpy(near)).numpy()

    @property
    def _similarity_learns(self) -> bool:
        """Whether a weight that the cosine is made of asks for its gradient."""
        return any(weight.requires_grad for weight in self.encoder.apart.parameters().values())
