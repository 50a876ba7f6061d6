"""A cross-encoder whose logit is added to the similarity of two embeddings: where it knows nothing, that decides.

NOTE [The residual]
    score = logit of the cross-encoder + weight · cosine of the mean-pooled embeddings of query and document
The embeddings are those of the bi-encoder that training started from, unchanged. The cross-encoder learns what is
missing (the residual), so on kinds of text that training never saw the order falls back to the bi-encoder's. The two
parts of a score are `parts_of`, and every explanation explains their sum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from backlight.engine.grad_mode import no_grad
from backlight.models.bi_encoder import TOKENS_COMPARED, BiEncoder, cosines, unit
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.encoders.encoder import Cut, KeyWeights, Trace
from backlight.models.encoders.two_streams import ResidualHead, TwoStreamBert, each_alone, pair_apart
from backlight.models.pairs import Pair, PairBatch
from backlight.models.pooling import READ_ALONE, gradient_of_pooling, pooled, weights_of
from backlight.models.scorer import Inside, MaskGradients, Progress, no_progress
from backlight.models.scoring import finite_scores, passes
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class ResidualCrossEncoder(CrossEncoder):
    """Scores a document for a query by a logit and a cosine (see NOTE [The residual]); arguments as `CrossEncoder`."""

    encoder: TwoStreamBert
    head: ResidualHead

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
        if inputs_embeds is None and not self._similarity_learns:
            return self.logits_of(batch) + from_numpy(self.cosine_part(batch))
        found = cosines(self.similarity.embed_texts(each_alone(batch), inputs_embeds))
        return self.logits_of(batch, inputs_embeds) + self.head.cosine_weight * found

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the score of each pair from the last states of both streams; (tokens, 2 · hidden) -> (pairs,)."""
        joint, apart = states.split(self.encoder.config.hidden_size, 1)
        found = cosines(unit(pooled(apart, each_alone(batch), self.similarity.pooling)))
        return self._logits(pooled(joint, batch, self.head.reads)) + self.head.cosine_weight * found

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state is read, one row a pair: half by the logit, half by the cosine."""
        alone = each_alone(batch)
        apart = batch.parts(np.concatenate(weights_of(alone, self.similarity.pooling)))
        return [logit / 2 + cosine / 4 for logit, cosine in zip(weights_of(batch, self.head.reads), apart)]

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the score of each pair, without recording; a text that several share is embedded once."""
        if inputs_embeds is not None:
            return super().score(batch, inputs_embeds)
        logits, similarity = self.parts_of(batch)
        return finite_scores(logits + similarity, batch.names)

    def parts_of(self, batch: PairBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the two parts of each score: the cross-encoder's logit and what the cosine brings; (pairs,) each."""
        with no_grad():
            return self.logits_of(batch).numpy(), self.cosine_part(batch)

    def cosine_part(self, batch: PairBatch) -> np.ndarray:
        """Return what the cosine brings to each score, without recording; (pairs,)."""
        return self._brought(self.similarity.score(PairBatch.of([pair_apart(pair) for pair in batch.pairs])))

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the score of each pair; a text that many share is embedded once (see NOTE [Distinct sequences])."""
        found: list[float] = []
        for block in passes(pairs, tokens=TOKENS_COMPARED):
            similarity = self._brought(self.similarity.scores_of([pair_apart(pair) for pair in block]))
            logits: list[float] = []
            for some in passes(block, tokens=self.tokens_a_pass):
                with no_grad():
                    logits += self.logits_of(PairBatch.of(some)).tolist()
                progress(len(some))
            scores = np.array(logits, np.float32) + similarity
            found += finite_scores(scores, [pair.name for pair in block]).tolist()
        return np.array(found, np.float32)

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return what went on in both streams (see NOTE [Two streams] in models/encoders/two_streams.py)."""
        return replace(super().inside(batch, slopes=slopes), joint_heads=self.encoder.config.num_attention_heads)

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions, and in the mean."""
        found = super().mask_gradients(batch)
        size = self.encoder.config.hidden_size
        read = gradient_of_pooling(each_alone(batch), found.last[:, size:], found.last_slopes[:, size:])
        return replace(found, gradients=found.gradients + read, last=None, last_slopes=None)

    def logits_of(self, batch: PairBatch, inputs_embeds: Tensor | None = None) -> Tensor:
        """Return what the cross-encoder alone says, (pairs,)."""
        return self._logits(self.encoder.joint(batch, inputs_embeds, READ_ALONE[self.head.reads](batch)))

    @property
    def _similarity_learns(self) -> bool:
        """Whether a weight that the cosine is made of asks for its gradient."""
        weights = self.head.cosine_weight, *self.encoder.apart.parameters().values()
        return any(weight.requires_grad for weight in weights)

    def _brought(self, found: np.ndarray) -> np.ndarray:
        """Return what cosines bring to scores; (pairs,) -> the same."""
        return found * self.head.cosine_weight.detach().numpy()
