"""Scores and gradients of pairs at other word embeddings than their own, many points at once.

A method that follows a path or draws noise evaluates one pair at many points. Points of a pair, and those of the pairs
after it, are laid end to end like any pairs, so that many short passes become few long ones.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from backlight.models.pairs import Pair, PairBatch
from backlight.models.scoring import PairScorer, passes


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
