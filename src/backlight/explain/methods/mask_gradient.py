"""First-order estimates of how much the score falls without a token: masked from attention, or deleted.

NOTE [The mask's gradient]
Let m_t weigh token t in every attention, A = softmax(logits + log m), and in the pooling of the last states, where the
model pools by a mean. m_t = 1 is the ordinary call, m_t = 0 the call without the token (`mask` in NOTE [Ways to leave
words out]). `mask-gradient` is ∂score/∂m_t at 1, which one backward pass gives for all tokens at once:

    Σ over layers, heads and queries q of A[q, t] · (∂score/∂A[q, t] − Σ_k A[q, k] · ∂score/∂A[q, k])
    + ∂score/∂h_t · (h_t − Σ_k w_k h_k)

h are the last states and w their weights in the pooling; the second line is zero where one token's state is read, and
is left out where a model reads by maxima.

NOTE [What moves up]
Deleting a token also moves all that follows by one position, which most words of a long text change the score by more
than by what they say. `deletion-gradient` adds this to first order, over the tokens j that follow in the sequence:

    mask-gradient of t − ⅛ Σ_{j > t} ∂score/∂x_j · (x_j at its position less one − x_j)

x are the states that the first layer is given. The eighth is measured, on 158 pairs of three models and three
collections: to first order the move overshoots, the more the longer the text. The five words that come first by it hold
0.75 to 0.87 of the effects that the five strongest words have (by ½ 0.59 to 0.79, by 0 0.73 to 0.88), and Spearman's
correlation with the effects of the other words is 0.54 to 0.68 (by ½ 0.50 to 0.77, by 0 0.16 to 0.67).
Where positions are not part of these states (rotary
or relative ones, or a model that PyTorch runs) nothing is added. Of all cheap methods it comes nearest to what deletion
really does: signs and order are compared in docs/faithfulness.md.

Source: Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, 2019, arXiv:1905.10650 (the gradient of a mask
variable as importance, of heads); De Cao, Schlichtkrull, Aziz, Titov, How do Decisions Emerge across Layers in Neural
Models?, 2020, arXiv:2004.14992 (masks of tokens).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe
from backlight.explain.checks import ScoreCheck, check_below_highest, check_values
from backlight.explain.methods.attention import pass_width
from backlight.explain.methods.by_batch import Pairs, Scores, Valued, explain_by_batch
from backlight.models.pairs import PairBatch
from backlight.models.pooling import gradient_of_pooling
from backlight.models.scorer import MaskGradients, Progress, Scorer, no_progress

SHIFT = 0.125  # how much of the first-order effect of what moves up counts: see NOTE [What moves up]


def mask_gradient(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return ∂score/∂mask of each token, in units of the score (see NOTE [The mask's gradient]).

    Arguments as in NOTE [A method].

    Raises:
        InputError: the model does not return attention.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    recipe = Recipe("mask-gradient", "∂score/∂mask: what it loses as the word leaves the attention", True, passes=2)
    return _explained(ranker, pairs, scores, progress, recipe, lambda batch, found: 0.0)


def deletion_gradient(
    ranker: Scorer, pairs: Pairs, *, scores: Scores = None, progress: Progress = no_progress
) -> list[Attribution]:
    """Return the first-order estimate of the score lost when each token is deleted; arguments as `mask_gradient`.

    See NOTE [What moves up].
    """
    recipe = Recipe("deletion-gradient", "what it loses, to first order, as the word is deleted", True, passes=2)
    return _explained(
        ranker, pairs, scores, progress, recipe, lambda batch, found: -SHIFT * _gained_by_shift(ranker, batch, found)
    )


def _explained(
    ranker: Scorer,
    pairs: Pairs,
    scores: Scores,
    progress: Progress,
    recipe: Recipe,
    besides: Callable[[PairBatch, MaskGradients], np.ndarray | float],
) -> list[Attribution]:
    """Return explanations by the mask's gradient, and what is added `besides`, (tokens,)."""

    def valued(batch: PairBatch, check: ScoreCheck) -> Valued:
        found = ranker.mask_gradients(batch)
        check(found.scores)
        check_below_highest(ranker, found.scores, batch.pairs)
        values = found.gradients + besides(batch, found)
        if found.last is not None:
            values = values + gradient_of_pooling(batch, found.last, found.last_slopes)
        for pair, own in zip(batch.pairs, batch.by_pair(values)):
            check_values(own, pair.name, "the mask's gradient")
        return found.scores, values

    return explain_by_batch(ranker, pairs, scores, progress, recipe, valued, pass_width)


def _gained_by_shift(ranker: Scorer, batch: PairBatch, found: MaskGradients) -> np.ndarray:
    """Return what the score gains, to first order, as all that follows each token moves up by one; (tokens,)."""
    try:
        moved = ranker.first_states(replace(batch, positions=np.maximum(batch.positions - 1, 0)))
    except InputError:
        return np.zeros(len(batch.ids))
    gains = (found.first_slopes * (moved - found.first)).sum(axis=1, dtype=np.float64)
    return np.concatenate([own[::-1].cumsum()[::-1] - own for own in batch.parts(gains)])
