"""Does company change an explanation: the largest difference between a pair explained alone and in a batch."""

from collections.abc import Callable, Sequence

import numpy as np

from backlight.explain.attribution import Attribution
from backlight.models.pairs import Pair


def batch_difference(explain: Callable, ranker, pairs: Sequence[Pair], company: Sequence[Pair] = ()) -> list[float]:
    """Return for each pair how far its values move in the company of the others, relative to its largest value.

    Args:
        explain: gives explanations, `explain(ranker, pairs) -> list[Attribution]`.
        company: pairs that are explained with the others, and not looked at.
    """
    together = explain(ranker, [*pairs, *company])
    return [_difference(explain(ranker, [pair])[0], other) for pair, other in zip(pairs, together)]


def _difference(alone: Attribution, together: Attribution) -> float:
    first, second = (
        np.array([word.value for text in (one.query, one.document) for word in text.words]) for one in (alone, together)
    )
    largest = np.abs(first).max(initial=0)
    return float(np.abs(first - second).max(initial=0) / largest) if largest else 0.0
