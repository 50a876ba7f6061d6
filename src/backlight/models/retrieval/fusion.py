"""One ranking from several: reciprocal rank fusion.

Source: Cormack, Clarke, Büttcher, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning Methods,
2009, doi:10.1145/1571941.1572114.
"""

from collections.abc import Sequence

import numpy as np

RRF_K = 60  # of the paper: how little the first ranks stand out


def reciprocal_rank_fusion(scores: Sequence[np.ndarray], k: int = RRF_K) -> np.ndarray:
    """Return Σ 1 / (k + rank) of each document over several rankings; (documents,).

    Equal scores have the same, mean rank. So documents that BM25 gives 0, which share no word with the query, are not
    told apart by it.

    Args:
        scores: of each ranking, (documents,) each.
    """
    return np.sum([1 / (k + mean_ranks(one)) for one in scores], axis=0)


def mean_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each score, 1 for the highest, the mean one among equals; (documents,).

    >>> mean_ranks(np.array([0.5, 2.0, 0.5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, places, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]
