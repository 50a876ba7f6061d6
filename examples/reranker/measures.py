"""How good rankings are: nDCG and the reciprocal rank where one document is right."""

import numpy as np

CUT = 10  # ranks that count


def ranks_of(scores: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the rank of the right document of each question, from 1, the mean one among equals.

    Shapes: scores (questions, documents), right (questions,) column of the right one, -1 where it is missing ->
        (questions,), inf where it is missing
    """
    own = np.take_along_axis(scores, np.maximum(right, 0)[:, None], 1)
    ranks = 1 + (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2
    return np.where(right < 0, np.inf, ranks)


def ndcg(ranks: np.ndarray) -> np.ndarray:
    """Return nDCG@10 of each question: 1 / log₂(rank + 1) down to rank 10."""
    return np.where(ranks <= CUT, 1 / np.log2(ranks + 1), 0)


def reciprocal(ranks: np.ndarray) -> np.ndarray:
    """Return the reciprocal rank of each question, 0 past rank 10."""
    return np.where(ranks <= CUT, 1 / ranks, 0)
