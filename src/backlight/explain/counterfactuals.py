"""The smallest set of words that a document must lose to fall below a score.

NOTE [The search]
First a beam: the best few sets of each size grow by a word at a time, until a set is enough. Only the words whose loss
alone lowers the score most are added. It finds a set fast, and not always a smallest. Then, as far as the budget goes,
every set of fewer words is tried, smallest sizes first: a hit is a smallest set, and no hit proves that the beam's was
one. What was tried once is never scored again.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import comb

from backlight.explain.attribution import Word
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.parts import Part, part_words, word_parts
from backlight.explain.words import is_mark
from backlight.models.pairs import DOCUMENT, Pair
from backlight.models.scorer import Scorer

Words = tuple[int, ...]  # the numbers of some words, in their order
PROMISING = 16  # words that sets grow by


@dataclass(frozen=True)
class Swap:
    """A set of words that the better document must lose to rank below the other.

    Args:
        side: the document that loses them, "a" or "b": the one with the higher score.
        words: in text order; the value of each is the score lost without that word only.
        score_after: the document's raw score without them, below the other's.
        exact: whether no smaller set is enough; then every smaller set was tried.
        passes: how many times the document went through the model in the search.
    """

    side: str
    words: tuple[Word, ...]
    score_after: float
    exact: bool
    passes: float


@dataclass(frozen=True)
class Tried:
    """The extent of a search for a swap.

    Args:
        words: how many words the document has, without punctuation.
        sets: how many sets of them were tried.
        spent: whether the budget ended the search.
    """

    words: int
    sets: int
    spent: bool


@dataclass(eq=False)
class Search:
    """A search among the words of a document (see NOTE [The search])."""

    ranker: Scorer
    pair: Pair  # as `ranker.read` gives it
    by: str  # how words are left out, a key of `WAYS`
    budget: int  # how many sets may be scored
    parts: list[Part] = field(init=False)  # words; punctuation stays
    spent: bool = False  # whether sets were left untried for want of budget
    scores: dict[Words, float] = field(default_factory=dict)  # without each set that was tried

    def __post_init__(self):
        text = self.pair.text(DOCUMENT)
        self.parts = [part for part in word_parts(self.pair, DOCUMENT) if not is_mark(text[part.start : part.end])]

    def swap(self, score: float, target: float, side: str, *, most: int, beam: int) -> Swap | None:
        """Return the smallest set found whose loss brings the score below the target; None if there was none.

        Args:
            score: the raw score of the pair as it is.
            target: the raw score to fall below.
            side: what to call the document in the result.
            most: how many words a set may have. A document never loses all its words.
            beam: how many sets of each size grow.
        """
        found = self._by_beam(target, min(most, len(self.parts) - 1), beam)
        if found is None:
            return None
        found, exact = self._by_all(target, found)
        singles = [score - self.scores[(number,)] for number in found]
        words = part_words(self.pair, [self.parts[number] for number in found], singles)
        return Swap(side, words, self.scores[found], exact, len(self.scores))

    @property
    def tried(self) -> Tried:
        """What the search went through so far."""
        return Tried(len(self.parts), len(self.scores), self.spent)

    def _by_beam(self, target: float, most: int, beam: int) -> Words | None:
        """Return a set that is enough, grown from the best sets of each size."""
        best: list[Words] = [()]
        words = list(range(len(self.parts)))
        for _ in range(most):
            grown = {tuple(sorted((*some, number))) for some in best for number in words}
            sets = sorted(some for some in grown if len(set(some)) == len(some) > len(best[0]))
            if not self._score(sets):
                return None
            ranked = sorted(sets, key=self.scores.__getitem__)
            best = ranked[:beam]
            if self.scores[best[0]] < target:
                return best[0]
            if len(best[0]) == 1:
                words = [number for (number,) in ranked[:PROMISING]]
        return None

    def _by_all(self, target: float, found: Words) -> tuple[Words, bool]:
        """Return a set that is enough, and whether no smaller one is, after trying the smaller ones that fit."""
        for size in range(2, len(found)):
            if comb(len(self.parts), size) > self.budget:  # not even listed
                return found, False
            sets = list(combinations(range(len(self.parts)), size))
            if not self._score(sets):
                return found, False
            best = min(sets, key=self.scores.__getitem__)
            if self.scores[best] < target:
                return best, True
        return found, True

    def _score(self, sets: list[Words]) -> bool:
        """Score the pair without each set that is new; give False, and score nothing, where the budget is too small."""
        new = [some for some in sets if some not in self.scores]
        if len(self.scores) + len(new) > self.budget:
            self.spent = True
            return False
        removals = ([self.parts[number] for number in some] for some in new)
        for scored in score_groups(
            self.ranker, [removal_called(self.by)(self.ranker, self.pair, removals)] if new else []
        ):
            self.scores.update(zip(new, scored.tolist(), strict=True))
        return True
