"""Explanations from attention: which tokens the states that the score reads have looked at, through all layers.

NOTE [Rows of a product]
Attention flows from layer to layer as a product of one matrix a layer. Only the rows that the score reads are wanted: a
weighted row, w, is multiplied from the last layer down, which costs tokens² a layer where the full product costs
tokens³. The weights are the model's own: all on [CLS] or on the last token, or the same on every token for a mean.
Query and document of a bi-encoder are two sequences, and each has its own row.
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.explain.attribution import Attribution, attribute_pair
from backlight.explain.checks import check_below_highest, check_same_scores, check_values, ordinary_passes
from backlight.models.pairs import Pair
from backlight.models.scoring import PairScorer


def attention_rollout(
    ranker: PairScorer,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return how much of each token arrives at what the score reads, if attention alone carried it.

        values = w · Π over layers, last first, of ½ (mean attention of the heads) + ½ I

    They are shares: those of a sequence add up to 1. They know where the model looked, not what it did with it, nor
    whether it helps: the same attentions with another head's weights give the same values.

    Args:
        pairs: as `ranker.read` gives them.
        scores: what the ordinary call gave, (pairs,); by default it is made here.
        progress: called with the number of pairs newly explained.

    Raises:
        InputError: the model reads by maxima, so no row is the one that it reads.
        RuntimeError: the two calls disagree.

    Source: Abnar, Zuidema, Quantifying Attention Flow in Transformers, 2020, arXiv:2005.00928.
    """

    def row(weights, attentions, gradients):
        for attention in reversed(attentions):
            weights = 0.5 * (weights @ attention.mean(axis=0)) + 0.5 * weights
        return weights

    fields = {"method": "attention-rollout", "meaning": "share of attention that arrives, through all layers"}
    return _explained(ranker, pairs, row, False, scores, progress, passes=2, **fields)


def attention_x_gradient(
    ranker,
    pairs: Sequence[Pair],
    *,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return how much of each token arrives by attention that raises the score; arguments as `attention_rollout`.

        Ā = mean over heads of max(0, A · ∂score/∂A),  values = w · (Π over layers, last first, of (I + Ā) − I)

    This is the published rule R ← R + Ā R, from R = I, less the identity that it begins with, which no attention has
    brought. What lowers the score is left out, so values are never negative.

    Raises:
        InputError: the model reads by maxima, so no row is the one that it reads.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.

    Source: Chefer, Gur, Wolf, Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder
        Transformers, 2021, arXiv:2103.15679 (equations 5 and 6, for self-attention).
    """

    def row(weights, attentions, gradients):
        arrived = weights
        for attention, gradient in zip(reversed(attentions), reversed(gradients)):
            arrived = arrived + arrived @ np.maximum(attention * gradient, 0).mean(axis=0)
        return arrived - weights

    meaning = "attention that arrives, weighted by how it raises the score"
    return _explained(
        ranker, pairs, row, True, scores, progress, passes=3, method="attention-x-gradient", meaning=meaning
    )


def _explained(
    ranker, pairs: Sequence[Pair], row: Callable, with_gradients: bool, scores: np.ndarray | None, progress, **fields
) -> list[Attribution]:
    """Return explanations by a function of one sequence's weights, attentions and their gradients -> (tokens,)."""
    done = []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores, _width):
        weights = ranker.read_weights(batch)
        inside = ranker.inside(batch, slopes=with_gradients)
        check_same_scores(inside.scores, ordinary, batch.pairs)
        if with_gradients:
            check_below_highest(ranker, inside.scores, batch.pairs)
        by_sequence = zip(*inside.attentions), zip(*inside.attention_slopes) if with_gradients else weights
        rows = [row(own.astype(np.float64), *parts) for own, *parts in zip(weights, *by_sequence)]
        for pair, score, values in zip(batch.pairs, inside.scores, batch.by_pair(np.concatenate(rows))):
            check_values(values, pair.name, "the attention")
            done.append(attribute_pair(pair, values, model=ranker.name, score=float(score), **fields))
        progress(len(batch.pairs))
    return done


def _width(pair: Pair) -> int:
    """Return how much room a pair takes: its tokens, or where sequences are long, what their attentions take."""
    return max(len(pair), sum(length * length for length in pair.lengths) // 128)
