"""One ranking from several: the sum of their scores, each brought to [0, 1].

It was chosen by measurement against reciprocal rank fusion (Cormack et al., 2009), which keeps only the order:
docs/retrieval.md has the figures.

Source: Fox, Shaw, Combination of Multiple Searches, 1994 (CombSUM); Lee, Analyses of Multiple Evidence Combination,
1997, doi:10.1145/258525.258587 (scores brought to [0, 1]).
"""

from collections.abc import Sequence

import numpy as np


def combined_sum(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Return Σ (score − lowest) / (highest − lowest) of each document over several rankings; (documents,).

    A ranking that has one score for all documents says nothing and adds 0.

    >>> combined_sum([np.array([3.0, 1.0, 1.0]), np.array([0.0, 0.5, 0.1])]).tolist()
    [1.0, 1.0, 0.2]

    Args:
        scores: of each ranking, (documents,) each.
    """
    return np.sum([_unit(one) for one in scores], axis=0)


def _unit(scores: np.ndarray) -> np.ndarray:
    lowest, highest = scores.min(), scores.max()
    return (scores - lowest) / (highest - lowest) if highest > lowest else np.zeros_like(scores)
