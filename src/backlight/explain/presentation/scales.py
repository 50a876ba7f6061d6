"""How strongly words and scores are shown: on one scale for all documents of a ranking, anchored at zero.

NOTE [One scale]
A word's shade is |value| / the largest |value| among all documents of the ranking that were explained, so that shades
can be compared from document to document, and a document whose words change nothing is pale. The query's words have a
scale of their own, over the same explanations. Punctuation has no shade, whatever its value, and no part in the scale.
Bars of scores begin at zero: cosines go to 1, logits whose activation is a sigmoid are shown by their probability,
other scores by their share of the largest score, with its sign.

NOTE [Measured, estimated, not to be believed]
Words whose value was measured have full colours and, where any other is an estimate (`Attribution.estimate`), a line
under them, however pale they are. Words whose value is an estimate are paler and have no line. Where the check of an
explanation fails, all of its words are pale; where nothing that was taken out changes the score, none has a colour.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

MEASURED, ESTIMATED = "measured", "estimated"  # kinds of words: see `Look.kind`
HOLDS, FAILS, NO_EFFECT = "holds", "fails", "no effect"  # verdicts of a check: see explain/verification.py
SIGNS = 0.8  # the share of signs that must be right for it to hold
PROBABILITY, ACTIVATED = "probability", "activation"
ROUNDING = 1e-4  # how far a single-precision sigmoid may be from ours


class ValuedWord(Protocol):
    """A `Word`, as far as its shade and its name depend on it."""

    text: str
    start: int
    value: float
    effect: float | None
    is_mark: bool


class ValuedText(Protocol):
    """A `TextAttribution`, as far as a scale depends on it."""

    words: Sequence[ValuedWord]


class Verdict(Protocol):
    """A `Check`, as far as a shade depends on it."""

    verdict: str


class Ran(Protocol):
    """An `Execution`."""

    engine: str
    device: str
    dtype: str
    sequences: str
    compiled: bool
    compared: int | None
    deviation: float | None


class Explained(Protocol):
    """An `Attribution`, as far as its shades depend on it."""

    method: str
    query: ValuedText
    document: ValuedText
    signed: bool
    settings: Mapping[str, int | float | str]
    estimate: str | None
    check: Verdict | None
    execution: Ran | None


class Scored(Protocol):
    """A `Ranked` document."""

    rank: int
    index: int
    score: float
    activated: float
    attribution: Explained | None


class TextInOtherLanguage(Protocol):
    """An `OtherLanguage`."""

    text: str
    language: str


class RankedDocuments(Protocol):
    """A `Ranking`."""

    score_name: str
    documents: Sequence[Scored]


@dataclass(frozen=True)
class Look:
    """How the words of one text are shown (see NOTE [One scale] and NOTE [Measured, estimated, not to be believed]).

    Args:
        signed: whether values have a sign.
        scale: the |value| of a full shade.
        estimates: whether words that were not measured have an estimate, in any text that is shown alike.
        verdict: that of the explanation's check; None where there was none.
    """

    signed: bool
    scale: float
    estimates: bool = False
    verdict: str | None = None

    def share(self, word: ValuedWord) -> float:
        """Return how strong a word's shade is, from -1 to 1; 0 for punctuation, and where no word has an effect."""
        return word.value / self.scale if self.scale and self.verdict != NO_EFFECT and not word.is_mark else 0.0

    def is_estimated(self, word: ValuedWord) -> bool:
        """Return whether a word's value is an estimate beside measured ones."""
        return self.estimates and word.effect != word.value

    def kind(self, word: ValuedWord) -> str:
        """Return what a word's line, or that it has none, says: `MEASURED`, `ESTIMATED` or `FAILS`; else nothing."""
        if self.fails:
            return FAILS
        if self.is_estimated(word):
            return ESTIMATED
        return MEASURED if self.estimates and self.verdict != NO_EFFECT and not word.is_mark else ""

    @property
    def fails(self) -> bool:
        """Whether the colours must not be believed."""
        return self.verdict == FAILS


def look_of(made: Explained, scale: float, beside: Iterable[Explained] = ()) -> Look:
    """Return how the words of an explanation's texts are shown on a scale.

    Args:
        beside: the other explanations that are shown with it.
    """
    verdict = None if made.check is None else made.check.verdict
    return Look(made.signed, scale, any(one.estimate is not None for one in (made, *beside)), verdict)


def largest_value(texts: Iterable[ValuedText]) -> float:
    """Return the largest |value| of any word of some texts; punctuation, which has no colour, does not count."""
    return max((abs(word.value) for text in texts for word in text.words if not word.is_mark), default=0.0)


def explanations_of(ranking: RankedDocuments) -> Iterator[Explained]:
    """Yield the explanations of a ranking, the best document's first."""
    return (ranked.attribution for ranked in ranking.documents if ranked.attribution is not None)


def ranking_scales(ranking: RankedDocuments) -> tuple[float, float]:
    """Return the scales of the query's words and of the documents' words."""
    made = list(explanations_of(ranking))
    return largest_value(one.query for one in made), largest_value(one.document for one in made)


def activation_of(documents: Sequence[Scored]) -> str | None:
    """Return what the activated score of documents is: `PROBABILITY`, another `ACTIVATED` score; None: the raw one."""
    return activation_of_scores([(one.score, one.activated) for one in documents])


def activation_of_scores(scores: Sequence[tuple[float, float | None]]) -> str | None:
    """Return what the second of each pair of scores, the activated one, is (see `activation_of`)."""
    known = [(score, activated) for score, activated in scores if activated is not None]
    if all(abs(activated - score) <= 1e-6 for score, activated in known):
        return None
    as_sigmoid = all(abs(activated - sigmoid(score)) <= ROUNDING for score, activated in known)
    return PROBABILITY if as_sigmoid else ACTIVATED


def bar_share(ranked: Scored, ranking: RankedDocuments) -> float:
    """Return the length and the side of a score's bar, from -1 to 1 (see NOTE [One scale])."""
    if ranking.score_name.startswith("cosine"):
        return max(-1.0, min(1.0, ranked.score))
    if activation_of(ranking.documents) == PROBABILITY:
        return ranked.activated
    most = max(abs(one.score) for one in ranking.documents)
    return ranked.score / most if most else 0.0


def sigmoid(score: float) -> float:
    """Return the probability of a logit."""
    return 1 / (1 + math.exp(-score)) if score >= 0 else 1 - 1 / (1 + math.exp(score))
