"""What explanations see of a model that scores pairs, in NumPy: scores, their gradients, and the inside of each layer.

NOTE [A scorer]
Every model that can be explained has `name`, `score_name`, `max_tokens`, `highest_score` (None, or where no gradient
can be), `read(pairs)` and `windows(query, document, stride)` that give `Pair`s, and the methods of `PairScorer`:
`embed`, `score`, `gradients`, `inside`, `read_weights`, `baseline`, `build_up`. Models on backlight's engine inherit
these; a model of another engine has its own. `score` returns raw scores (logits), by which documents are ranked;
`activate` turns them into the scores that are shown (for example probabilities).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.autograd.api import grad
from backlight.engine.grad_mode import no_grad
from backlight.errors import GraphError, InputError
from backlight.models.encoders.encoder import Trace
from backlight.models.pairs import Pair, PairBatch
from backlight.system.fork_safety import cached_property
from backlight.tensor.creation import from_numpy
from backlight.tensor.tensor import Tensor

TOKENS_A_PASS = 2048  # what is run at once: enough to keep the processor busy, little enough to stay near the caches
BASELINES = ("zero", "pad", "mask", "average")  # embeddings that stand for no word in particular


@dataclass(frozen=True, eq=False)
class Inside:
    """What went on inside a model for a batch of pairs, and how strongly each score reacts to it.

    Args:
        scores: raw scores, (pairs,).
        states: the hidden states that the first layer was given, then those after each layer, (tokens, hidden).
        attentions: for each layer the attention of each sequence, (heads, queries, keys).
        state_slopes: ∂score/∂state in the order of `states`; None where they were not requested.
        attention_slopes: ∂score/∂attention in the order of `attentions`.
    """

    scores: np.ndarray
    states: list[np.ndarray]
    attentions: list[tuple[np.ndarray, ...]]
    state_slopes: list[np.ndarray] | None = None
    attention_slopes: list[tuple[np.ndarray, ...]] | None = None


class PairScorer:
    """Base class of scorers (see NOTE [A scorer]); its methods run `pair_scores` on backlight's engine."""

    def pair_scores(self, batch: PairBatch, inputs_embeds: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        """Return the raw score of each pair, in the graph.

        Args:
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).
            trace: is filled with what went on inside.

        Shapes: -> (pairs,)
        """
        raise GraphError(f"{type(self).__name__} must say how it scores pairs")

    @property
    def vocab_size(self) -> int:
        """How many word embeddings there are."""
        return self.encoder.config.vocab_size

    def embed_ids(self, ids: np.ndarray) -> np.ndarray:
        """Return the word embeddings of tokens; (tokens,) -> (tokens, hidden)."""
        with no_grad():
            return self.encoder.embed_words(ids).numpy()

    def embed(self, batch: PairBatch) -> np.ndarray:
        """Return the word embeddings of a batch; -> (tokens, hidden)."""
        return self.embed_ids(batch.ids)

    def score(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> np.ndarray:
        """Return the raw score of each pair, without recording.

        Args:
            inputs_embeds: word embeddings to use in place of those of `batch.ids`, (tokens, hidden).

        Shapes: -> (pairs,)

        Raises:
            InputError: a score is not finite.
        """
        with no_grad():
            found = self.pair_scores(batch, None if inputs_embeds is None else from_numpy(inputs_embeds)).numpy()
        return finite_scores(found, [pair.name for pair in batch.pairs])

    def gradients(self, batch: PairBatch, inputs_embeds: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw scores, and the gradient of each pair's score for the word embeddings of its tokens.

        Shapes: -> (pairs,), (tokens, hidden)

        Raises:
            RuntimeError: the score does not depend on the word embeddings.
        """
        start = self.embed(batch) if inputs_embeds is None else inputs_embeds
        leaf = from_numpy(start).detach().requires_grad_()  # see NOTE [The leaf] in explain/methods/gradients.py
        scores = self.pair_scores(batch, leaf)
        return scores.detach().numpy(), _gradients(scores, [leaf], "the word embeddings")[0]

    def curvatures(
        self, batch: PairBatch, directions: Iterable[np.ndarray], inputs_embeds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, Iterator[np.ndarray]]:
        """Return scores, their gradients, and the product of their second derivatives with each direction.

        Only models on backlight's own engine can say this. Each product is made when the iterator reaches it.

        Args:
            directions: changes of the word embeddings, each (tokens, hidden).
            inputs_embeds: where derivatives are taken, (tokens, hidden); at the words' own embeddings by default.

        Shapes: -> (pairs,), (tokens, hidden), an iterator of (tokens, hidden)

        Raises:
            RuntimeError: the score does not depend on the word embeddings.
        """
        start = self.embed(batch) if inputs_embeds is None else inputs_embeds
        leaf = from_numpy(start).detach().requires_grad_()  # see NOTE [The leaf] in explain/methods/gradients.py
        scores = self.pair_scores(batch, leaf)
        if not scores.requires_grad:
            raise GraphError("the score must depend on the word embeddings, and does not; nothing was explained")
        (gradients,) = grad(scores.sum(), [leaf], create_graph=True)
        products = (
            grad((gradients * from_numpy(direction)).sum(), [leaf], retain_graph=True)[0].numpy()
            for direction in directions
        )
        return scores.detach().numpy(), gradients.detach().numpy(), products

    def inside(self, batch: PairBatch, *, slopes: bool = False) -> Inside:
        """Return hidden states and attentions of every layer, and with `slopes` the gradients of the scores for them.

        Raises:
            RuntimeError: the score does not depend on what went on inside.
        """
        leaf = from_numpy(self.embed(batch)).detach().requires_grad_(slopes)
        trace = Trace()
        scores = self.pair_scores(batch, leaf, trace)
        attentions = [tuple(part.detach().numpy() for part in layer) for layer in trace.attentions]
        found = Inside(scores.detach().numpy(), [state.detach().numpy() for state in trace.states], attentions)
        if not slopes:
            return found
        flat = [part for layer in trace.attentions for part in layer]
        arrays = iter(_gradients(scores, [*trace.states, *flat], "the hidden states"))
        return Inside(
            found.scores,
            found.states,
            attentions,
            [next(arrays) for _ in trace.states],
            [tuple(next(arrays) for _ in layer) for layer in attentions],
        )

    def read_weights(self, batch: PairBatch) -> list[np.ndarray]:
        """Return how much of each token's last state the score reads: a row for each sequence, which sums to 1.

        Raises:
            InputError: the model reads by maxima, and what it reads differs from one dim to the next.
        """
        raise GraphError(f"{type(self).__name__} must say what its score reads")

    def score_states(self, states: Tensor, batch: PairBatch) -> Tensor:
        """Return the raw score of each pair from the last state of each of its tokens, in the graph.

        Shapes: states (tokens, hidden) -> (pairs,)
        """
        raise GraphError(f"{type(self).__name__} must say how it scores states")

    def build_up(self, batch: PairBatch) -> np.ndarray:
        """Return the scores that the states after each layer would get were that layer the last.

        Shapes: -> (layers + 1, pairs); the first are those of what the first layer was given, the last the raw scores
        """
        trace = Trace()
        with no_grad():
            last = self.pair_scores(batch, None, trace).numpy()
            before = [self.score_states(self.encoder.finish(states), batch).numpy() for states in trace.states[:-1]]
        return np.stack([*before, last])

    def baseline(self, name: str) -> np.ndarray:
        """Return a word embedding that stands for no word in particular, (hidden,).

        Args:
            name: `zero`, `pad` and `mask` (the tokens that the tokeniser has for these ends), or `average`, the mean of
                the vocabulary.

        Raises:
            InputError: there is no such baseline, or the tokeniser has no such token.
        """
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

    def scores_of(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda done: None) -> np.ndarray:
        """Return the raw score of each pair, `TOKENS_A_PASS` tokens at a time.

        Args:
            progress: called with the number of pairs done since the last call.
        """
        found = []
        for some in passes(pairs):
            found.append(self.score(PairBatch.of(some)))
            progress(len(some))
        return np.concatenate(found) if found else np.empty(0, np.float32)

    def rank_scores(
        self, query: str, documents: Sequence[str], progress: Callable[[int], None] = lambda done: None
    ) -> np.ndarray:
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


def _gradients(scores: Tensor, places: list[Tensor], what: str) -> list[np.ndarray]:
    """Return the gradients of the summed scores: each place belongs to one pair, so the sum mixes nothing."""
    found = [None] * len(places)
    if scores.requires_grad:
        found = grad(scores.sum(), places, allow_unused=True)
    if all(part is None for part in found):
        raise GraphError(f"the score must depend on {what}, and no gradient reached them; nothing was explained")
    return [np.zeros(place.shape, np.float32) if part is None else part.numpy() for place, part in zip(places, found)]


def passes(texts: Iterable, width: Callable[..., int] = len) -> Iterator[list]:
    """Cut texts or pairs, one after another, into runs of about `TOKENS_A_PASS` tokens, in their order.

    Args:
        width: how many tokens a text brings into the run.
    """
    some, total = [], 0
    for text in texts:
        if some and total + width(text) > TOKENS_A_PASS:
            yield some
            some, total = [], 0
        some.append(text)
        total += width(text)
    if some:
        yield some
