"""Explanations from one gradient: how strongly a score reacts to a small change of each token's embedding.

NOTE [The leaf]
The gradient is taken for a detached copy of the WORD embeddings. Positions and segments are added after it, by the
model, as in an ordinary call. Wrong turns that give no error elsewhere: `.clone()` of an embedding is no leaf; a leaf
that the model was not given has no gradient; a call that forgets segments explains another score. So the score of this
path must equal the ordinary call's, and a gradient that is missing, zero or not finite is an error. Nothing stands
in for it. Weights are frozen: no gradient is computed for them.

Source: Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, 2013, arXiv:1312.6034; Shrikumar, Greenside,
Shcherbina, Kundaje, Not Just a Black Box, 2016, arXiv:1605.01713 (gradient × input).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from backlight.explain.attribution import Attribution, attribute_pair
from backlight.explain.checks import checked_gradients, ordinary_passes
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scoring import PairScorer, passes


def saliency(
    ranker: PairScorer,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return Σ |∂score/∂embedding| over the dims of each token's embedding: the L1 norm of its gradient.

    Args:
        pairs: as `ranker.read` gives them.
        scores: what the ordinary call gave, (pairs,); by default it is made here.
        progress: called with the number of pairs newly explained.

    Returns:
        One explanation a pair, in units of the score per unit of embedding.

    Raises:
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """

    def size(gradients, embeddings):
        return np.abs(gradients).sum(axis=1)

    return _explained(ranker, pairs, size, scores, progress, method="saliency", meaning="Σ|∂score/∂embedding|")


def saliency_l2(
    ranker,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return √Σ (∂score/∂embedding)²: the L2 norm of each token's gradient; arguments and errors as `saliency`."""

    def size(gradients, embeddings):
        return np.linalg.norm(gradients, axis=1)

    return _explained(ranker, pairs, size, scores, progress, method="saliency-l2", meaning="√Σ(∂score/∂embedding)²")


def gradient_x_input(
    ranker,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return Σ ∂score/∂embedding · embedding for each token, in units of the score; otherwise as `saliency`.

    That is what the score would lose, were it linear, if the embedding shrank to zero. The sign says whether the word
    helps (+) or harms (−).
    """

    def product(gradients, embeddings):
        return (gradients * embeddings).sum(axis=1)

    fields = {"method": "gradient-x-input", "meaning": "Σ ∂score/∂embedding · embedding", "signed": True}
    return _explained(ranker, pairs, product, scores, progress, **fields)


def _explained(
    ranker, pairs: Sequence[Pair], value: Callable, scores: np.ndarray | None, progress: Callable[[int], None], **fields
) -> list[Attribution]:
    """Return explanations whose values are a function of gradients and embeddings, (tokens, hidden) -> (tokens,)."""
    explained = []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores):
        found, gradients = checked_gradients(ranker, batch, ordinary=ordinary)
        values = batch.by_pair(value(gradients, ranker.embed(batch)))
        for pair, score, own in zip(batch.pairs, found, values):
            # one forward for the ordinary score, one forward and one backward for the gradient
            explained.append(attribute_pair(pair, own, model=ranker.name, score=float(score), passes=3, **fields))
        progress(len(batch.pairs))
    return explained


def gradients_at(ranker: PairScorer, points: Iterable[tuple[Pair, np.ndarray]]) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the score of each point and its gradient there, in their order.

    Args:
        points: pairs, each with the word embeddings that stand in for its own, (tokens, hidden). They are made as they
            are needed: only those of one pass are held.

    Shapes: yields (), (tokens, hidden)

    Raises:
        RuntimeError: the score does not depend on the word embeddings.
    """
    for some in passes(points, width=lambda point: len(point[0])):
        batch = PairBatch.of([pair for pair, _ in some])
        scores, gradients = ranker.gradients(batch, np.concatenate([embeddings for _, embeddings in some]))
        yield from zip(scores.tolist(), batch.by_pair(gradients))
