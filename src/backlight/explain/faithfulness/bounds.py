"""How much of the score any order could take away at best and at worst, and where an explanation stands between.

AOPC depends on the model and the document: a document whose words all say the same loses little by any order. Between
the bounds, 1 is the best order that there is, 0 the worst, and a random one is near the middle.

Source: Edin, Motzfeldt, Christensen, Ruotsalo, Maaløe, Maistro, Normalized AOPC: Fixing Misleading Faithfulness Metrics
for Feature Attributions Explainability, 2024, arXiv:2408.08137.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
