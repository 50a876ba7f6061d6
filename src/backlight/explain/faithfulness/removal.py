"""Scores of a pair whose document lost some of its words (see NOTE [Ways to leave words out]).

No way is beyond doubt: a mask over the attention leaves gaps in the positions that no training text has, and a text
without some words says something else. So faithfulness is measured by both. Special tokens and the query always stay.
"""

from collections.abc import Sequence

import numpy as np

from backlight.errors import InputError
from backlight.explain.methods.ablation import removal_called
from backlight.explain.parts import word_parts
from backlight.models.pairs import DOCUMENT, Pair, PairBatch
from backlight.models.scorer import Scorer
from backlight.models.scoring import passes


class DocumentScores:
    """Scores of a pair with some words of its document left out. Each set of words is scored once.

    Args:
        pair: as the ranker reads it.
        by: how words are left out, a key of `WAYS`.
        groups: words that leave together, as lists of their numbers; each word alone by default.

    Raises:
        InputError: the document has no words, or the way is unknown.
    """

    def __init__(self, ranker: Scorer, pair: Pair, by: str = "mask", groups: Sequence[Sequence[int]] | None = None):
        self.words = word_parts(pair, DOCUMENT)
        if not self.words:
            raise InputError(f"{pair.name} must have words to leave out, and has none")
        self._ranker, self._pair, self._remove = ranker, pair, removal_called(by)
        self._groups = [[number] for number in range(len(self.words))] if groups is None else groups
        self.whole = float(ranker.score(PairBatch.of([pair]))[0])  # the ordinary score: nothing is left out
        self._known = {np.ones(len(self), bool).tobytes(): self.whole}

    def __len__(self) -> int:
        return len(self._groups)

    def __call__(self, keeps: np.ndarray) -> np.ndarray:
        """Return the score with the words (or groups) that stay.

        Args:
            keeps: whether each stays, (sets, words).

        Shapes: -> (sets,)
        """
        keeps = np.ascontiguousarray(keeps, bool)
        keys = [row.tobytes() for row in keeps]
        new = {key: row for key, row in zip(keys, keeps) if key not in self._known}
        if new:
            removals = (
                [self.words[number] for group in np.flatnonzero(~keep) for number in self._groups[group]]
                for keep in new.values()
            )
            self._known.update(
                zip(new, scores_of(self._ranker, list(self._remove(self._ranker, self._pair, removals))))
            )
        return np.array([self._known[key] for key in keys])


def scores_of(ranker: Scorer, pairs: Sequence[Pair]) -> list[float]:
    """Return the raw score of each pair, as many at once as a pass takes."""
    return [score for some in passes(pairs) for score in ranker.score(PairBatch.of(some)).tolist()]
