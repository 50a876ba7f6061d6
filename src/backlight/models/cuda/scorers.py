"""Cross- and bi-encoders whose scores and gradients come from a GPU.

NOTE [What runs on a GPU]
The encoder runs there: scores, and gradients of scores for word embeddings. The head, or the cosine, works on one
vector a text and stays in backlight's graph. All else (states and attentions of layers, second derivatives) runs on the
processor, as without a GPU, on the same weights. When a model is put on a GPU, the scores and gradients of a pair are
compared with the processor's, and explanations say how far gradients of some pairs are from these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

import numpy as np

from backlight.autograd.api import grad
from backlight.engine.grad_mode import no_grad
from backlight.errors import InputError
from backlight.kernels.cuda.device import Device
from backlight.models.bi_encoder import BiEncoder, cosines, unit
from backlight.models.cross_encoder import CrossEncoder
from backlight.models.cuda.bert import CudaBert, Read
from backlight.models.encoders.bert import Bert
from backlight.models.encoders.encoder import Cut, KeyWeights, Trace
from backlight.models.pairs import Pair, PairBatch
from backlight.models.pooling import READ_ALONE, weights_of
from backlight.models.scorer import Execution
from backlight.models.scoring import PairScorer, finite_scores, gradients_of
from backlight.models.tokens import Batch
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

TOKENS_A_PASS = 32_768  # 3 GB of what is kept for a gradient with MiniLM-L6, 12 GB with BERT-base
ROUNDING = {"float32": 1e-5, "tf32": 1e-2, "bfloat16": 6e-2}  # of scores, as those of PyTorch's dtypes
TOLERANCE = {"float32": 1e-4, "tf32": 2e-2, "bfloat16": 0.1}  # of a gradient, as a share of its length
SAMPLE, ONE_OF = 4, 16  # pairs whose gradients are compared with the processor's: at most so many, and one of so many
PROBE = ("a b c", "d e f g h i j k")
Found = TypeVar("Found")


class OnCuda(PairScorer):
    """Scores pairs by an encoder on a GPU (see NOTE [What runs on a GPU]); a model says what is read, and scores it.

    Attributes:
        cuda: the encoder there.
    """

    tokens_a_pass = TOKENS_A_PASS
    cuda: CudaBert

    @property
    def pooling_read(self) -> str:
        """How the states of a text become one vector, a key of `POOLINGS` or `READ_ALONE`."""
        raise NotImplementedError

    def scores_of_read(self, read: Tensor) -> Tensor:
        """Return scores, in the graph, of what is read of each text; (texts, hidden) -> (pairs,)."""
        raise NotImplementedError

    def read_of(self, batch: Batch) -> Read:
        """Return what the score reads of each text."""
        pooling = self.pooling_read
        weights = weights_of(batch, "mean" if pooling == "mean_sqrt_len_tokens" else pooling)
        if pooling == "mean_sqrt_len_tokens":
            weights = [one * len(one) ** 0.5 for one in weights]
        return Read(np.concatenate(weights).astype(np.float32), pooling in READ_ALONE)

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair."""

        def run(some: PairBatch, words: np.ndarray | None) -> np.ndarray:
            read, _ = self.cuda.run(some, self.read_of(some), words)
            with no_grad():
                return self.scores_of_read(from_numpy(read)).numpy()

        return finite_scores(np.concatenate(self._in_parts(batch, inputs_embeds, run)), batch.names)

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens."""

        def run(some: PairBatch, words: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
            read, kept = self.cuda.run(some, self.read_of(some), words, keep=True)
            leaf = from_numpy(read).requires_grad_()
            scores = self.scores_of_read(leaf)
            (of_read,) = gradients_of(grad, scores, [leaf], "the word embeddings")
            return scores.detach().numpy(), self.cuda.gradient(kept, of_read)

        scores, gradients = zip(*self._in_parts(batch, inputs_embeds, run))
        return finite_scores(np.concatenate(scores), batch.names), np.concatenate(gradients)

    def execution(self, pairs: Sequence[Pair], *, gradients: bool) -> Execution:
        """Return how pairs are run, and how far gradients of some are from the processor's in float32."""
        device = self.cuda.device
        found = Execution("backlight's kernels", device.name, device.dtype, "end to end, without padding")
        if not gradients or not pairs:
            return found
        ordered = sorted(pairs, key=len)
        count = min(SAMPLE, -(-len(ordered) // ONE_OF))
        some = [ordered[(2 * number + 1) * len(ordered) // (2 * count)] for number in range(count)]
        deviation = self.deviation(PairBatch.of(some))[1]
        return replace(found, compared=count, deviation=deviation)

    def deviation(self, batch: PairBatch) -> tuple[float, float]:
        """Return how far scores and gradients are from the processor's, the most of all pairs.

        Scores in units of the score, or of its size above 1; gradients as shares of their lengths.
        """
        here, there = PairScorer.gradients(self, batch), self.gradients(batch)
        scores = np.abs(here[0] - there[0]) / np.maximum(1.0, np.abs(here[0]))
        pairs = zip(*(batch.by_pair(gradients) for _, gradients in (here, there)))
        lengths = [np.linalg.norm(ours - theirs) / (np.linalg.norm(ours) or 1.0) for ours, theirs in pairs]
        return float(scores.max()), float(max(lengths))

    def checked(self) -> "OnCuda":
        """Return the scorer. Raises InputError: it scores a pair unlike the processor, so that it cannot be used."""
        dtype = self.cuda.device.dtype
        scores, gradients = self.deviation(PairBatch.of(self.read([PROBE])))
        if not (scores <= 10 * ROUNDING[dtype] and gradients <= TOLERANCE[dtype]):
            raise InputError(
                f"{self.cuda.device.name} must give the scores and gradients of the processor, and is off by "
                f"{scores:.2g} and {100 * gradients:.2g} % in {dtype}: leave --device out, and report this"
            )
        return self

    def _in_parts(
        self,
        batch: PairBatch,
        words: np.ndarray | None,
        run: Callable[[PairBatch, np.ndarray | None], Found],
    ) -> list[Found]:
        """Return what running a batch gave, in one part, or in halves where the device has no memory for it.

        Raises:
            InputError: it has none for a single pair.
        """
        try:
            return [run(batch, words)]
        except MemoryError as problem:
            if len(batch.pairs) == 1:
                raise InputError(
                    f"{self.cuda.device.name} must have memory for one pair of {len(batch.ids)} tokens, and has not"
                ) from problem
        self.cuda.device.free_memory()  # after the block, which holds what the run had allocated
        middle = len(batch.pairs) // 2
        cut = batch.places[middle].start
        halves = (batch.pairs[:middle], slice(cut)), (batch.pairs[middle:], slice(cut, None))
        parts = [
            self._in_parts(PairBatch.of(pairs), None if words is None else words[own], run) for pairs, own in halves
        ]
        return parts[0] + parts[1]


@dataclass(frozen=True, eq=False)
class CudaCrossEncoder(OnCuda, CrossEncoder):
    """A cross-encoder on a GPU."""

    cuda: CudaBert = field(kw_only=True)

    @property
    def pooling_read(self) -> str:
        """What the head reads."""
        return self.head.reads

    def scores_of_read(self, read: Tensor) -> Tensor:
        """Return the logit of each pair."""
        return self._logits(read)


@dataclass(frozen=True, eq=False)
class CudaBiEncoder(OnCuda, BiEncoder):
    """A bi-encoder on a GPU; texts that pairs share are embedded once, as on the processor."""

    cuda: CudaBert = field(kw_only=True)

    @property
    def pooling_read(self) -> str:
        """How texts are pooled."""
        return self.pooling

    def scores_of_read(self, read: Tensor) -> Tensor:
        """Return the cosine of each pair."""
        return cosines(unit(read))

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the score of each pair."""
        return BiEncoder.score(self, batch) if inputs_embeds is None else super().score(batch, inputs_embeds)

    def embed_texts(
        self, batch: Batch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return each text's embedding, of length 1: from the GPU, unless it is to be looked into."""
        if inputs_embeds is not None or trace is not None:
            return BiEncoder.embed_texts(self, batch, inputs_embeds, trace)
        return unit(from_numpy(self.cuda.run(batch, self.read_of(batch))[0]))


KINDS = {CrossEncoder: CudaCrossEncoder, BiEncoder: CudaBiEncoder}


def on_cuda(scorer: PairScorer, device: Device) -> OnCuda:
    """Return a model with its encoder on a GPU, compared with the processor (see NOTE [What runs on a GPU]).

    Raises:
        InputError: it is no cross- or bi-encoder of BERT's shape, or pools by maxima, or the two do not agree.
    """
    kind = KINDS.get(type(scorer))
    if kind is None or type(scorer.encoder) is not Bert:
        raise InputError(
            f"on cuda backlight's engine runs cross- and bi-encoders of BERT's shape (BERT, RoBERTa, XLM-R, CamemBERT, "
            f"ELECTRA, DistilBERT), and {scorer.name} is none: leave --device out, or add --engine torch"
        )
    if getattr(scorer, "pooling", None) == "max":
        raise InputError(f"on cuda texts cannot be pooled by maxima, as {scorer.name} does: leave --device out")
    settings = {one.name: getattr(scorer, one.name) for one in fields(scorer)}
    return kind(**settings, cuda=CudaBert(scorer.encoder, device)).checked()
