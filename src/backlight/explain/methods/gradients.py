"""Explanations from one gradient: how strongly a score reacts to a small change of each token's embedding.

NOTE [The leaf]
The gradient is taken for a detached copy of the WORD embeddings. Positions and segments are added after it, by the
model, as in an ordinary call. Wrong turns that give no error elsewhere: `.clone()` of an embedding is no leaf; a leaf
that the model was not given has no gradient; a call that forgets segments explains another score. So the scores of this
path must equal the ordinary call's: all that were made before, or that of the shortest pair, which is made for this
check alone. A gradient that is missing, zero or not finite is an error. Nothing stands in for it. Weights are frozen:
no gradient is computed for them.

Source: Simonyan, Vedaldi, Zisserman, Deep Inside Convolutional Networks, 2013, arXiv:1312.6034; Shrikumar, Greenside,
Shcherbina, Kundaje, Not Just a Black Box, 2016, arXiv:1605.01713 (gradient × input).
"""

from collections.abc import Callable

import numpy as np

from backlight.explain.attribution import Attribution, Recipe
from backlight.explain.checks import ScoreCheck, checked_gradients
from backlight.explain.methods.by_batch import Pairs, Scores, Valued, explain_by_batch
from backlight.models.pairs import PairBatch
from backlight.models.scorer import Progress, Scorer, no_progress

PASSES = 2  # one forward, which gives the score too, and one backward


def saliency(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return Σ |∂score/∂embedding| over the dims of each token's embedding: the L1 norm of its gradient.

    Arguments as in NOTE [A method]. Values are in units of the score per unit of embedding.

    Raises:
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    recipe = Recipe("saliency", "Σ|∂score/∂embedding|", passes=PASSES)
    return _explained(ranker, pairs, scores, progress, recipe, lambda gradients, _: np.abs(gradients).sum(axis=1))


def saliency_l2(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return √Σ (∂score/∂embedding)²: the L2 norm of each token's gradient; arguments and errors as `saliency`."""
    recipe = Recipe("saliency-l2", "√Σ(∂score/∂embedding)²", passes=PASSES)
    return _explained(ranker, pairs, scores, progress, recipe, lambda gradients, _: np.linalg.norm(gradients, axis=1))


def gradient_x_input(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return Σ ∂score/∂embedding · embedding for each token, in units of the score; otherwise as `saliency`.

    This is the first-order estimate of the score lost if the embedding became zero: + if the word raises the score,
    − if it lowers it.
    """
    recipe = Recipe("gradient-x-input", "Σ ∂score/∂embedding · embedding", signed=True, passes=PASSES)
    return _explained(ranker, pairs, scores, progress, recipe, lambda gradients, words: (gradients * words).sum(axis=1))


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    scores: Scores,
    progress: Progress,
    recipe: Recipe,
    value: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[Attribution]:
    """Return explanations whose values are a function of gradients and embeddings, (tokens, hidden) -> (tokens,)."""

    def valued(batch: PairBatch, check: ScoreCheck) -> Valued:
        found, gradients = checked_gradients(ranker, batch, check)
        return found, value(gradients, ranker.embed(batch))

    return explain_by_batch(ranker, pairs, scores, progress, recipe, valued)
