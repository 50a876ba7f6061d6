"""Explanations from attention: which tokens the states that the score reads have looked at, through all layers.

NOTE [Rows of a product]
Attention flows from layer to layer as a product of one matrix a layer. Only the rows that the score reads are wanted: a
weighted row, w, is multiplied from the last layer down, which costs tokens² a layer where the full product costs
tokens³. The weights are the model's own: all on [CLS] or on the last token, or the same on every token for a mean.
Query and document of a bi-encoder are two sequences, and each has its own row.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.explain.attribution import Attribution, Recipe
from backlight.explain.checks import ScoreCheck, check_below_highest, check_values
from backlight.explain.methods.by_batch import Pairs, Scores, Valued, explain_by_batch
from backlight.models.pairs import Pair, PairBatch
from backlight.models.scorer import Progress, Scorer, no_progress

Layers = Sequence[np.ndarray]  # for each layer (heads, tokens, tokens), of one sequence


def attention_rollout(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return attention rollout: how much of each token reaches the positions that the score reads, by attention only.

        values = w · Π over layers, last first, of ½ (mean attention of the heads) + ½ I

    Values are shares: those of a sequence sum to 1. They show where attention went, not its effect on the score or
    its sign: the same attention with another head's weights gives the same values.

    Arguments as in NOTE [A method].

    Raises:
        InputError: the model uses max pooling, so there is no single position that the score reads.
        RuntimeError: the two calls disagree.

    Source: Abnar, Zuidema, Quantifying Attention Flow in Transformers, 2020, arXiv:2005.00928.
    """

    def row(weights: np.ndarray, attentions: Layers, gradients: Layers) -> np.ndarray:
        for attention in reversed(attentions):
            weights = 0.5 * (weights @ attention.mean(axis=0)) + 0.5 * weights
        return weights

    recipe = Recipe("attention-rollout", "share of attention that arrives, through all layers")
    return _explained(ranker, pairs, scores, progress, recipe, row, with_gradients=False)


def attention_x_gradient(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return how much of each token is propagated by attention that raises the score; arguments as `attention_rollout`.

        Ā = mean over heads of max(0, A · ∂score/∂A),  values = w · (Π over layers, last first, of (I + Ā) − I)

    This is the published rule R ← R + Ā R, starting from R = I, minus that identity, which does not come from
    attention. Attention that lowers the score is left out, so values are never negative.

    Raises:
        InputError: the model uses max pooling, so there is no single position that the score reads.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.

    Source: Chefer, Gur, Wolf, Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
        Transformers, 2021, arXiv:2103.15679 (equations 5 and 6, for self-attention).
    """

    def row(weights: np.ndarray, attentions: Layers, gradients: Layers) -> np.ndarray:
        arrived = weights
        for attention, gradient in zip(reversed(attentions), reversed(gradients)):
            arrived = arrived + arrived @ np.maximum(attention * gradient, 0).mean(axis=0)
        return arrived - weights

    meaning = "attention that arrives, weighted by how it raises the score"
    recipe = Recipe("attention-x-gradient", meaning, passes=2)
    return _explained(ranker, pairs, scores, progress, recipe, row, with_gradients=True)


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    scores: Scores,
    progress: Progress,
    recipe: Recipe,
    row: Callable[[np.ndarray, Layers, Layers], np.ndarray],
    *,
    with_gradients: bool,
) -> list[Attribution]:
    """Return explanations by a function of one sequence's weights, attentions and their gradients -> (tokens,)."""

    def valued(batch: PairBatch, check: ScoreCheck) -> Valued:
        weights = ranker.read_weights(batch)
        inside = ranker.inside(batch, slopes=with_gradients)
        check(inside.scores)
        if with_gradients:
            check_below_highest(ranker, inside.scores, batch.pairs)
        by_sequence = zip(*inside.attentions), zip(*inside.attention_slopes) if with_gradients else weights
        rows = [row(own.astype(np.float64), *parts) for own, *parts in zip(weights, *by_sequence)]
        values = np.concatenate(rows)
        for pair, own in zip(batch.pairs, batch.by_pair(values)):
            check_values(own, pair.name, "the attention")
        return inside.scores, values

    return explain_by_batch(ranker, pairs, scores, progress, recipe, valued, pass_width)


def pass_width(pair: Pair) -> int:
    """Return how much room a pair takes: its tokens, or where sequences are long, what their attentions take."""
    return max(len(pair), sum(length * length for length in pair.lengths) // 128)
