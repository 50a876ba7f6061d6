"""Gradient × activation at the states between layers: what each token's state contributes to the score, layer by layer.

A state deep inside has gathered from other tokens: the deeper the layer, the less its place says about the word that
was read there. After the last layer only the tokens that the head reads have a gradient at all.

Source: Shrikumar, Greenside, Shcherbina, Kundaje, Not Just a Black Box, 2016, arXiv:1605.01713 (gradient × input).
"""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, attribute_pair
from backlight.explain.checks import check_below_highest, check_same_scores, check_values, ordinary_passes
from backlight.models.pairs import ADDED, Pair, PairBatch
from backlight.models.scoring import PairScorer


def products_by_layer(ranker, batch: PairBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return raw scores, and Σ ∂score/∂state · state of each token at each layer, in units of the score.

    Shapes: -> (pairs,), (layers + 1, tokens); the first row is of what the first layer was given
    """
    inside = ranker.inside(batch, slopes=True)
    rows = [(state * gradient).sum(axis=1) for state, gradient in zip(inside.states, inside.state_slopes)]
    return inside.scores, np.stack(rows)


def layer_gradient_x_activation(
    ranker: PairScorer,
    pairs: Sequence[Pair],
    *,
    layer: int | None = None,
    scores: np.ndarray | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Attribution]:
    """Return Σ ∂score/∂state · state of each token's state after a layer, in units of the score.

    Args:
        pairs: as `ranker.read` gives them.
        layer: after which layer; 0 for what the first layer is given; by default half of the layers.
        scores: what the ordinary call gave, (pairs,); by default it is made here.
        progress: called with the number of pairs newly explained.

    Raises:
        InputError: there is no such layer, or the score reads no word's state after it.
        RuntimeError: a gradient is missing, zero or not finite, or the two calls disagree.
    """
    done = []
    for batch, ordinary in ordinary_passes(ranker, pairs, scores):
        found, rows = products_by_layer(ranker, batch)
        check_same_scores(found, ordinary, batch.pairs)
        check_below_highest(ranker, found, batch.pairs)
        last = len(rows) - 1
        chosen = last // 2 if layer is None else layer
        if not 0 <= chosen <= last:
            raise InputError(f"layer must be from 0 to {last}, got {layer}")
        for pair, score, values in zip(batch.pairs, found, batch.by_pair(rows[chosen])):
            check_values(values, pair.name)
            if not values[pair.sides != ADDED].any():
                raise InputError(
                    f"layer must leave something to read in the words of {pair.name}, and after layer {chosen} of "
                    f"{last} the score reads special tokens alone: choose an earlier one"
                )
            done.append(
                attribute_pair(
                    pair,
                    values,
                    method="layer-gradient-x-activation",
                    meaning=f"Σ ∂score/∂state · state after layer {chosen}",
                    model=ranker.name,
                    score=float(score),
                    signed=True,
                    passes=3,
                    settings={"layer": chosen, "layers": last},
                )
            )
        progress(len(batch.pairs))
    return done
