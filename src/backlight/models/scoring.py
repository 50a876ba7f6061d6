"""How models score pairs of texts in passes of some thousand tokens, and what all scorers share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from backlight.autograd.api import grad
from backlight.engine.grad_mode import no_grad
from backlight.errors import GraphError, InputError
from backlight.models.encoders.encoder import Cut, KeyWeights, Trace
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import Execution, Inside, MaskGradients, Progress, StateGradients, Texts, no_progress
from backlight.system.fork_safety import cached_property
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

TOKENS_A_PASS = 2048  # what is run at once: enough to keep the processor busy, little enough to stay near the caches
ROUNDING = 1e-5  # how far scores of one pair in single precision may differ between batches
BASELINES = ("zero", "pad", "mask", "average")  # embeddings that stand for no word in particular
Activation = Callable[[np.ndarray], np.ndarray]  # of raw scores
ACTIVATIONS: dict[str, Activation] = {
    "identity": lambda logits: logits,
    "sigmoid": lambda logits: 1 / (1 + np.exp(-logits.astype(np.float64))),
}


class PairScorer:
    """Base class of scorers (see `Scorer` in models/scorer.py); its methods run `pair_scores` on backlight's engine.

    A model has `reader`, which reads pairs, and `activation`, a key of `ACTIVATIONS`.
    """

    highest_score: float | None = None  # a logit has none
    tokens_a_pass: int = TOKENS_A_PASS
    rounding: float = ROUNDING

    def pair_scores(
        self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | Cut | KeyWeights | None = None
    ) -> Tensor:
        """Return the raw score of each pair, in the graph; (pairs,)."""
        raise GraphError(f"{type(self).__name__} must say how it scores pairs")

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the raw score of each pair from the last state of each of its tokens, in the graph."""
        raise GraphError(f"{type(self).__name__} must say how it scores states")

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state the score reads: a row for each sequence, which sums to 1."""
        raise GraphError(f"{type(self).__name__} must say what its score reads")

    @property
    def max_tokens(self) -> int:
        """How many tokens of a pair, or of a text, the model reads."""
        return self.reader.max_length

    @property
    def vocab_size(self) -> int:
        """How many word embeddings there are."""
        return self.encoder.config.vocab_size

    def read(self, pairs: Sequence[Texts]) -> list[Pair]:
        """Return pairs of query and document as the model reads them."""
        return self.reader(pairs)

    def windows(self, query: str, document: str, stride: int | None = None) -> Sequence[Pair]:
        """Return a pair for each window of a long document; one, if all of it fits."""
        return self.reader.windows(query, document, stride)

    def activate(self, scores: np.ndarray) -> np.ndarray:
        """Return raw scores after the model's activation, for example as probabilities."""
        return ACTIVATIONS[self.activation](np.asarray(scores))

    def execution(self, pairs: Sequence[Pair], *, gradients: bool) -> Execution | None:
        """Return None: backlight's engine runs pairs on the processor, in the dtype of the weights."""
        return None

    def embed_ids(self, ids: np.ndarray) -> np.ndarray:
        """Return the word embeddings of tokens; (tokens,) -> (tokens, hidden)."""
        with no_grad():
            return self.encoder.embed_words(ids).numpy()

    def embed(self, batch: PairBatch) -> np.ndarray:
        """Return the word embeddings of a batch; -> (tokens, hidden)."""
        return self.embed_ids(batch.ids)

    def first_states(self, batch: PairBatch) -> np.ndarray:
        """Return the states that the first layer is given; -> (tokens, hidden)."""
        with no_grad():
            return self.encoder.first_states(batch).numpy()

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair, without recording."""
        with no_grad():
            found = self.pair_scores(batch, None if inputs_embeds is None else from_numpy(inputs_embeds)).numpy()
        return finite_scores(found, batch.names)

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens."""
        leaf = self._leaf(batch, inputs_embeds)
        scores = self.pair_scores(batch, leaf)
        (gradients,) = gradients_of(grad, scores, [leaf], "the word embeddings")
        return finite_scores(scores.detach().numpy(), batch.names), gradients

    def curvatures(
        self, batch: PairBatch, directions: Iterable[np.ndarray], inputs_embeds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, Iterator[np.ndarray]]:
        """Return scores, their gradients, and the product of their second derivatives with each direction."""
        leaf = self._leaf(batch, inputs_embeds)
        scores = self.pair_scores(batch, leaf)
        if not scores.requires_grad:
            raise GraphError("the score must depend on the word embeddings, and does not; nothing was explained")
        (gradients,) = grad(scores.sum(), [leaf], create_graph=True)
        products = (
            grad((gradients * from_numpy(direction)).sum(), [leaf], retain_graph=True)[0].numpy()
            for direction in directions
        )
        return scores.detach().numpy(), gradients.detach().numpy(), products

    def _leaf(self, batch: PairBatch, inputs_embeds: np.ndarray | None) -> Tensor:
        """Return word embeddings to differentiate for (see NOTE [The leaf] in explain/methods/gradients.py)."""
        return from_numpy(self.embed(batch) if inputs_embeds is None else inputs_embeds).detach().requires_grad_()

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return hidden states and attentions of every layer, and with `slopes` the gradients of the scores."""
        leaf = from_numpy(self.embed(batch)).detach().requires_grad_(slopes)
        trace = Trace()
        scores = self.pair_scores(batch, leaf, trace)
        attentions = [tuple(part.detach().numpy() for part in layer) for layer in trace.attentions]
        raw = finite_scores(scores.detach().numpy(), batch.names)
        found = Inside(raw, [state.detach().numpy() for state in trace.states], attentions)
        if not slopes:
            return found
        flat = [part for layer in trace.attentions for part in layer]
        arrays = iter(gradients_of(grad, scores, [*trace.states, *flat], "the hidden states"))
        return replace(
            found,
            state_slopes=[next(arrays) for _ in trace.states],
            attention_slopes=[tuple(next(arrays) for _ in layer) for layer in attentions],
        )

    def mask_gradients(self, batch: PairBatch) -> MaskGradients:
        """Return how strongly each score reacts to the weight of each token in all attentions."""
        if not self.encoder.weighs_keys:
            return MaskGradients.of(self.inside(batch, slopes=True))
        weights = KeyWeights()
        scores = self.pair_scores(batch, None, weights)
        places = [weights.logs, weights.first, weights.last]
        gradients, first, last = gradients_of(grad, scores, places, "the attentions")
        states = [weights.first.detach().numpy(), weights.last.detach().numpy()]
        alone = len(states[1]) < len(states[0])
        found = finite_scores(scores.detach().numpy(), batch.names)
        return MaskGradients(found, gradients, states[0], first, *((None, None) if alone else (states[1], last)))

    def state_gradients(self, batch: PairBatch, layer: int | None = None) -> StateGradients:
        """Return the states after one layer, and the gradients of the scores for them."""
        cut = Cut(layer)
        scores = self.pair_scores(batch, None, cut)
        (gradients,) = gradients_of(grad, scores, [cut.states], f"the states after layer {cut.layer}")
        found = finite_scores(scores.detach().numpy(), batch.names)
        return StateGradients(cut.layer, cut.layers, found, cut.states.detach().numpy(), gradients)

    def build_up(self, batch: PairBatch) -> np.ndarray:
        """Return the scores that the states after each layer would get were that layer the last."""
        trace = Trace()
        with no_grad():
            last = self.pair_scores(batch, None, trace).numpy()
            before = [self.score_states(self.encoder.finish(states), batch).numpy() for states in trace.states[:-1]]
        return np.stack([*before, last])

    def baseline(self, name: str) -> np.ndarray:
        """Return a word embedding that stands for no word in particular, (hidden,): a name of `BASELINES`."""
        if name not in BASELINES:
            raise InputError(f"baseline must be one of {', '.join(BASELINES)}, got {name}")
        if name in ("pad", "mask"):
            return self.embed_ids(np.array([self.tokenizer.id_of(name)]))[0]
        return self._average_word if name == "average" else np.zeros_like(self._average_word)

    @cached_property
    def _average_word(self) -> np.ndarray:
        """The mean embedding of the vocabulary, (hidden,)."""
        places = np.arange(self.vocab_size)
        parts = [places[start : start + TOKENS_A_PASS] for start in range(0, len(places), TOKENS_A_PASS)]
        sums = [self.embed_ids(part).sum(axis=0, dtype=np.float64) for part in parts]
        return (np.sum(sums, axis=0) / len(places)).astype(np.float32)

    def scores_of(self, pairs: Iterable[Pair], progress: Progress = no_progress) -> np.ndarray:
        """Return the raw score of each pair, `tokens_a_pass` tokens at a time."""
        found: list[float] = []  # not the arrays: a small one may lie in, and keep, a large block of a pass
        for some in passes(pairs, tokens=self.tokens_a_pass):
            found += self.score(PairBatch.of(some)).tolist()
            progress(len(some))
        return np.array(found, np.float32)

    def rank_scores(self, query: str, documents: Sequence[str], progress: Progress = no_progress) -> np.ndarray:
        """Return the raw score of each document for a query."""
        return self.scores_of(self.read([(query, document) for document in documents]), progress)


def finite_scores(scores: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return raw scores, (pairs,).

    Args:
        names: of the pairs.

    Raises:
        InputError: one is NaN or infinite, so that it says nothing and cannot be ranked by.
    """
    if not np.isfinite(scores).all():
        first = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise InputError(
            f"the score of {names[first]} must be a finite number, got {scores[first]}: the model's weights are "
            "damaged, or too large for their dtype"
        )
    return scores


def gradients_of(grad: Callable, scores: Any, places: Sequence[Any], what: str) -> list[np.ndarray]:
    """Return the gradients of the summed scores: each place belongs to one pair, so the sum mixes nothing.

    Args:
        grad: of the engine whose tensors `scores` and `places` are: backlight's or PyTorch's.
        what: what the places are, for the error.

    Raises:
        RuntimeError: the scores depend on none of them.
    """
    found = [None] * len(places)
    if scores.requires_grad:
        found = grad(scores.sum(), places, allow_unused=True)
    if all(part is None for part in found):
        raise GraphError(f"the score must depend on {what}, and no gradient reached them; nothing was explained")
    return [np.zeros(place.shape, np.float32) if part is None else part.numpy() for place, part in zip(places, found)]


def passes(texts: Iterable, width: Callable[..., int] = len, tokens: int = TOKENS_A_PASS) -> Iterator[list]:
    """Cut texts or pairs, one after another, into runs of about so many tokens, in their order.

    Args:
        width: how many tokens a text brings into the run.
        tokens: of a run; more, if one text has more.
    """
    some, total = [], 0
    for text in texts:
        if some and total + width(text) > tokens:
            yield some
            some, total = [], 0
        some.append(text)
        total += width(text)
    if some:
        yield some
