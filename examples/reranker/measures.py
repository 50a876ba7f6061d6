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


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the probability that a score of the first lies above one of the second; equals count half.

    Source: Hanley, McNeil, The Meaning and Use of the Area under a ROC Curve, 1982,
        doi:10.1148/radiology.143.1.7063747.
    """
    order = np.sort(np.asarray(negative, np.float64))
    below = np.searchsorted(order, positive, "left") + np.searchsorted(order, positive, "right")
    return float(below.mean() / (2 * len(order)))


def calibration(logits: np.ndarray, right: np.ndarray, bins: int = 10) -> tuple[float, list[tuple[float, float, int]]]:
    """Return the expected calibration error of sigmoid(logit), and each bin's mean probability, share right and count.

        error = Σ over bins of count / all · |share right − mean probability|

    Shapes: logits (pairs,), right (pairs,) of booleans. Bins are of equal width; empty ones are left out.
    Source: Guo et al., On Calibration of Modern Neural Networks, 2017, arXiv:1706.04599.
    """
    probability = 1 / (1 + np.exp(-np.clip(np.asarray(logits, np.float64), -60, 60)))
    places = np.minimum((probability * bins).astype(int), bins - 1)
    held = [places == place for place in range(bins) if (places == place).any()]
    found = [(float(probability[one].mean()), float(np.mean(right[one])), int(one.sum())) for one in held]
    error = sum(count * abs(share - mean) for mean, share, count in found) / len(probability)
    return float(error), found
