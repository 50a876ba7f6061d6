"""What becomes of a document's place among its rivals, and of the list's nDCG, when its strongest words leave.

Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, doi:10.1145/582415.582418 (nDCG).
"""

from collections.abc import Sequence

import numpy as np

CUT = 10  # places of a list that count


def rank_among(score: float, rivals: Sequence[float]) -> float:
    """Return the place of a score among its rivals', from 1; among equals the mean one."""
    rivals = np.asarray(rivals, np.float64)
    return float(1 + (rivals > score).sum() + (rivals == score).sum() / 2)


def ndcg(scores: Sequence[float], labels: Sequence[float], cut: int = CUT) -> float:
    """Return the nDCG of a list: Σ (2^label − 1) / log₂(place + 1) over the best `cut`, as a share of the best order's.

    Of documents with equal scores the less relevant comes first. A list without a relevant document has 0.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    gains = np.exp2(labels) - 1
    discounts = 1 / np.log2(np.arange(2, min(cut, len(gains)) + 2))
    by_score = gains[np.lexsort((gains, -scores))][: len(discounts)]
    best = np.sort(gains)[::-1][: len(discounts)] @ discounts
    return float(by_score @ discounts / best) if best > 0 else 0.0
