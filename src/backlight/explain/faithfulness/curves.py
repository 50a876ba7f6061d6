"""Deletion and insertion curves: the score as an explanation's strongest words are removed, or added alone.

NOTE [Which words come first]
By an explanation with signs the word of the largest value comes first: it says that this word brings most to the score,
so the score should fall most without it. A word of a large negative value is said to harm, and leaves last. An
explanation without signs gives sizes, and the largest comes first. Words of equal value keep the order of the text.

NOTE [Bounds]
AOPC depends on the model and the document: a document whose words all say the same loses little by any order. Between
the bounds, 1 is the best order that there is, 0 the worst, and a random one is near the middle.

Source: DeYoung et al., ERASER, 2020, arXiv:1911.03429 (comprehensiveness and sufficiency, averaged over shares of the
words; there of probabilities, here of the raw score, which no sigmoid flattens); Samek, Binder, Montavon, Bach, Müller,
Evaluating the visualization of what a Deep Neural Network has learned, 2015, arXiv:1509.06321 (AOPC); Petsiuk, Das,
Saenko, RISE, 2018, arXiv:1806.07421 (insertion); Edin, Motzfeldt, Christensen, Ruotsalo, Maaløe, Maistro, Normalized
AOPC: Fixing Misleading Faithfulness Metrics for Feature Attributions Explainability, 2024, arXiv:2408.08137 (bounds).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backlight.errors import GraphError
from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.removal import DocumentScores
from backlight.explain.parts import Part

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)  # of the document's words: those that comprehensiveness and sufficiency look at
TENTHS = tuple(number / 10 for number in range(11))


def word_values(explained: Attribution, words: Sequence[Part]) -> np.ndarray:
    """Return the value of each word of the document; (words,).

    Where a method explains sentences, the value of each is shared among its words.

    Raises:
        RuntimeError: the explanation is of other words.
    """
    starts = np.array([word.start for word in words])
    values = np.full(len(words), np.nan)
    for part in explained.document.words:
        own = (starts >= part.start) & (starts < part.end)
        values[own] = part.value / max(1, own.sum())
    if np.isnan(values).any():
        raise GraphError(
            f"{explained.method} must explain all {len(words)} words of the document, and leaves out "
            f"{np.isnan(values).sum()}"
        )
    return values


def importance(values: np.ndarray, signed: bool) -> np.ndarray:
    """Return what words are put in order by: the value, or its size where no sign is meant."""
    return values if signed else np.abs(values)


def strongest_first(importances: np.ndarray) -> np.ndarray:
    """Return the places of words by falling importance (see NOTE [Which words come first])."""
    return np.argsort(-importances, kind="stable")


def counts(shares: Sequence[float], words: int) -> np.ndarray:
    """Return how many words each share is: rounded up, so that any share above 0 is a word at least.

    >>> counts((0, 0.1, 0.5, 1), 11).tolist()
    [0, 2, 6, 11]
    """
    return np.ceil(np.asarray(shares) * words - 1e-9).astype(int)


def without_first(order: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """Return which words stay when the first of an order leave.

    Shapes: order (words,), numbers (sets,) -> (sets, words)
    """
    places = np.empty(len(order), int)
    places[order] = np.arange(len(order))
    return places[None, :] >= np.asarray(numbers)[:, None]


def only_first(order: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """Return which words stay when only the first of an order do; shapes as `without_first`."""
    return ~without_first(order, numbers)


def deletion(scores: DocumentScores, order: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """Return the score without the first words of an order, for each share of the words; (shares,)."""
    return scores(without_first(order, counts(shares, len(order))))


def insertion(scores: DocumentScores, order: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """Return the score with only the first words of an order, for each share of the words; (shares,)."""
    return scores(only_first(order, counts(shares, len(order))))


def lost(full_score: float, scores: np.ndarray) -> float:
    """Return by how much the scores of a curve lie below the full document's, on average.

    Of a deletion curve this is the comprehensiveness (a faithful order loses much), of an insertion curve the
    sufficiency (it loses little).
    """
    return float(full_score - np.mean(scores))


def area(shares: Sequence[float], scores: Sequence[float]) -> float:
    """Return the area under a curve by trapezes: the mean score over the shares."""
    return float(np.trapezoid(scores, shares))


def aopc(scores: Callable[[np.ndarray], np.ndarray], full_score: float, order: np.ndarray) -> float:
    """Return the area over the perturbation curve: the mean of score lost after 1, 2, … all words of an order left."""
    return lost(full_score, scores(without_first(order, np.arange(1, len(order) + 1))))


WIDTH = 5  # sets of words that the search follows at each length
GROUPS = 10  # runs of words that a document is cut into: the search for n words scores about n² / 2 · WIDTH sets


@dataclass(frozen=True)
class Bounds:
    """The lowest and the highest AOPC that was found for a document."""

    low: float
    high: float

    def including(self, *found: float) -> "Bounds":
        """Return bounds that hold these too: a narrow search may miss an order that an explanation found."""
        return Bounds(min(self.low, *found), max(self.high, *found))

    def normalised(self, value: float) -> float:
        """Return where an AOPC stands: 0 at the low bound, 1 at the high; 0.5 where no order matters."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5


def beam_bounds(
    scores: Callable[[np.ndarray], np.ndarray], full_score: float, count: int, *, width: int = WIDTH
) -> Bounds:
    """Return bounds of AOPC over all orders of `count` words or groups.

    They are exact where `width` is at least the number of sets of any one size (with 4 words: 6).

    Args:
        scores: gives the score with those that stay; keeps (sets, words) -> (sets,).
        full_score: the score with all.
        width: how many sets are followed at each length.
    """
    low = -_best(lambda keeps: scores(keeps) - full_score, count, width)
    return Bounds(low, _best(lambda keeps: full_score - scores(keeps), count, width))


def _best(gain: Callable[[np.ndarray], np.ndarray], count: int, width: int) -> float:
    """Return the largest mean gain over the sets that an order goes through, as far as the search finds it.

    Of two orders that took the same set away the one that gained more until then is as good or better for ever after:
    so sets are followed, not orders.
    """
    totals = {np.ones(count, bool).tobytes(): 0.0}
    for _ in range(count):
        before: dict[bytes, float] = {}
        for key, total in totals.items():
            keep = np.frombuffer(key, bool)
            for place in np.flatnonzero(keep):
                next_keep = keep.copy()
                next_keep[place] = False
                found = next_keep.tobytes()
                before[found] = max(total, before.get(found, -np.inf))
        gains = gain(np.stack([np.frombuffer(key, bool) for key in before]))
        ranked = sorted(zip(before, gains + np.array(list(before.values()))), key=lambda one: -one[1])
        totals = dict(ranked[:width])
    return max(totals.values()) / count


def runs_of_words(words: int, groups: int = GROUPS) -> list[list[int]]:
    """Cut the numbers of words into runs of about equal length: as many as `groups`, or each word alone.

    >>> runs_of_words(5, 2), runs_of_words(2, 4)
    ([[0, 1, 2], [3, 4]], [[0], [1]])
    """
    return [run.tolist() for run in np.array_split(np.arange(words), min(words, groups))]
