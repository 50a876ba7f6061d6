"""Gradient × activation at the states between layers: what each token's state contributes to the score, layer by layer.

A state deep inside has gathered from other tokens: the deeper the layer, the less its place says about the word that
was read there. After the last layer only the tokens that the head reads have a gradient at all.

Source: Shrikumar, Greenside, Shcherbina, Kundaje, Not Just a Black Box, 2016, arXiv:1605.01713 (gradient × input).
"""

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, Recipe, attribute_pair
from backlight.explain.checks import check_below_highest, check_values, checked_passes
from backlight.explain.methods.by_batch import Pairs, Scores
from backlight.models.pairs import ADDED, PairBatch
from backlight.models.scorer import Progress, Scorer, no_progress

PASSES = 2  # one forward, which gives the score too, and one backward, down to the layer


def products_by_layer(ranker: Scorer, batch: PairBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return raw scores, and Σ ∂score/∂state · state of each token at each layer, in units of the score.

    Shapes: -> (pairs,), (layers + 1, tokens); the first row is the input of the first layer
    """
    inside = ranker.inside(batch, slopes=True)
    rows = [(state * gradient).sum(axis=1) for state, gradient in zip(inside.states, inside.state_slopes)]
    return inside.scores, np.stack(rows)


def layer_gradient_x_activation(
    ranker: Scorer,
    pairs: Pairs,
    *,
    layer: int | None = None,
    scores: Scores = None,
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return Σ ∂score/∂state · state of each token's state after a layer, in units of the score.

    Args:
        layer: the number of the layer; 0 is the input of the first layer; by default half of the layers. Others as in
            NOTE [A method].

    Raises:
        InputError: there is no such layer, or the score does not depend on the words' states after it.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    done = []
    for batch, check in checked_passes(ranker, pairs, scores):
        found = ranker.state_gradients(batch, layer)
        check(found.scores)
        check_below_highest(ranker, found.scores, batch.pairs)
        chosen, last = found.layer, found.layers
        meaning, settings = f"Σ ∂score/∂state · state after layer {chosen}", {"layer": chosen, "layers": last}
        recipe = Recipe("layer-gradient-x-activation", meaning, signed=True, passes=PASSES, settings=settings)
        products = (found.states * found.gradients).sum(axis=1)
        for pair, score, values in zip(batch.pairs, found.scores, batch.by_pair(products)):
            check_values(values, pair.name)
            if not values[pair.sides != ADDED].any():
                raise InputError(
                    f"layer must leave something to read in the words of {pair.name}, and after layer {chosen} of "
                    f"{last} the score reads special tokens alone: choose an earlier one"
                )
            done.append(attribute_pair(pair, values, recipe, ranker.name, score))
        progress(len(batch.pairs))
    return done
