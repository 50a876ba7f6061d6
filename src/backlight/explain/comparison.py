"""Why one document stands above another, and how a score changes when a document is edited."""

from dataclasses import dataclass

from backlight.explain.attribution import Attribution, TextAttribution, Truncation, Word


@dataclass(frozen=True)
class Swap:
    """A set of words that the better document must lose to stand below the other.

    Args:
        side: the document that loses them, "a" or "b": the one with the higher score.
        words: in the order of the text; the value of each is what the score loses without that word alone.
        score_after: the document's raw score without them, which is below the other's.
        exact: whether no smaller set does it; every smaller set was tried then.
        passes: how many times the document went through the model in the search.
    """

    side: str
    words: tuple[Word, ...]
    score_after: float
    exact: bool
    passes: float


@dataclass(frozen=True)
class Comparison:
    """Why document A stands above document B for a query, or B above A.

    Args:
        query: what was asked.
        model: the model's name.
        score_name: what a score is.
        method: how the words' values were computed.
        name_a, name_b: what the documents are called.
        a, b: the values of the words of each pair: what they bring to score(A) − score(B). With + they push A up or
            B down, with − the other way round. Each has its own document's raw score.
        query_words: what the query's words bring to the difference, by both pairs together.
        score_a, score_b: the raw scores.
        difference: score(A) − score(B).
        swap: the words that the better document must lose to stand below the other; None where the search found none.
        passes: how many times a pair went through the model, forward or backward.
    """

    query: str
    model: str
    score_name: str
    method: str
    name_a: str
    name_b: str
    a: Attribution
    b: Attribution
    query_words: TextAttribution
    score_a: float
    score_b: float
    difference: float
    swap: Swap | None
    passes: float


@dataclass(frozen=True)
class Version:
    """A document at one step of its edits.

    Args:
        edit: what was done to the version before it; empty for the document as it was given.
        document: the text.
        score: its raw score.
        activated: what the model's owners show in its place.
        rank: its place among the candidates and itself, 1 for the best; None where no candidates were given.
        truncation: how much of the text the score does not know.
    """

    edit: str
    document: str
    score: float
    activated: float
    rank: int | None
    truncation: Truncation


@dataclass(frozen=True)
class WhatIf:
    """How a document's score changes with edits, made one after another.

    Args:
        query: what was asked.
        model: the model's name.
        score_name: what a score is.
        versions: the document as it was given, then after each edit.
        candidates: how many other documents the ranks count.
    """

    query: str
    model: str
    score_name: str
    versions: tuple[Version, ...]
    candidates: int = 0

    @property
    def before(self) -> Version:
        """The document as it was given."""
        return self.versions[0]

    @property
    def after(self) -> Version:
        """The document after all edits."""
        return self.versions[-1]

    @property
    def change(self) -> float:
        """What all edits together bring to the raw score."""
        return self.after.score - self.before.score
