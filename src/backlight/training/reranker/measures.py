"""How good rankings are: nDCG and the reciprocal rank; how far a probability can be believed, and how well scores
separate two groups."""

from collections.abc import Sequence

import numpy as np

CUT = 10  # ranks that count
BINS = 10  # of probabilities


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


def graded_ndcg(scores: Sequence[float], labels: Sequence[float]) -> float:
    """Return nDCG@10 of one ranking, where documents may be more or less right.

        DCG = Σ label / log₂(rank + 1) down to rank 10, divided by that of the best order

    Documents with equal scores count with the mean of their ranks' discounts.

    Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, doi:10.1145/582415.582418.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    ranks = np.arange(1, len(scores) + 1)
    discounts = np.where(ranks <= CUT, 1 / np.log2(ranks + 1), 0)
    best = (np.sort(labels)[::-1] * discounts).sum()
    order = np.argsort(-scores, kind="stable")
    _, ties = np.unique(-scores[order], return_inverse=True)
    means = np.bincount(ties, discounts) / np.bincount(ties)
    return float((labels[order] * means[ties]).sum() / best)


def reliability(probabilities: np.ndarray, labels: np.ndarray) -> list[tuple[float, float, int]]:
    """Return the mean probability, mean label and number of pairs of each of ten bins of equal width that is not empty.

    Shapes: probabilities, labels (pairs,)
    """
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    held = [bins == number for number in range(BINS) if (bins == number).any()]
    return [(float(probabilities[own].mean()), float(np.mean(labels[own])), int(own.sum())) for own in held]


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the expected calibration error, over the bins of `reliability`.

        Σ over bins of |mean probability − mean label| · share of the pairs in the bin

    Shapes: probabilities, labels (pairs,)

    Source: Naeini, Cooper, Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning, 2015.
    """
    gaps = (abs(mean - label) * count for mean, label, count in reliability(probabilities, labels))
    return float(sum(gaps) / len(labels))


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the probability that a score of the first lies above one of the second; equals count half.

    Source: Hanley, McNeil, The Meaning and Use of the Area under a ROC Curve, 1982,
        doi:10.1148/radiology.143.1.7063747.
    """
    order = np.sort(np.asarray(negative, np.float64))
    below = np.searchsorted(order, positive, "left") + np.searchsorted(order, positive, "right")
    return float(below.mean() / (2 * len(order)))
