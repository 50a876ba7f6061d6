"""How much one typo in the query changes a score: what separates documents by less is not a difference to trust."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backlight.explain.words import word_spans
from backlight.models.scorer import Scorer

TYPOS = 3  # one-letter typos whose effect is averaged
COMPARED = 5  # most documents whose order is tried
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def typos(query: str, count: int = TYPOS, seed: int = 0) -> list[str]:
    """Return a query with one letter replaced by another, in as many ways; fewer where it has too few letters.

    >>> typos("plant energy", 2)
    ['planp energy', 'plant ezergy']
    """
    draw = np.random.default_rng(seed)
    places = [
        place for start, end in word_spans(query) for place in range(start, end) if query[place].lower() in LETTERS
    ]
    found = []
    for place in draw.permutation(places)[:count].tolist():
        others = LETTERS.replace(query[place].lower(), "")
        found.append(query[:place] + others[draw.integers(len(others))] + query[place + 1 :])
    return found


def typo_effect(ranker: Scorer, query: str, document: str, *, count: int = TYPOS, seed: int = 0) -> float | None:
    """Return how much a one-letter typo in the query changes a document's score: the mean of |change| over `count`.

    In units of the raw score; None where the query has no Latin letter to mistype.
    """
    misspelt = typos(query, count, seed)
    if not misspelt:
        return None
    pairs = ranker.read([(query, document), *((one, document) for one in misspelt)])
    score, *others = ranker.scores_of(pairs).tolist()
    return float(np.mean([abs(other - score) for other in others]))


@dataclass(frozen=True)
class TypoEffect:
    """What one-letter typos in the query do to the best document's score, and to its place.

    Args:
        effect: the mean of |change| of the best document's raw score.
        close: how many documents, the best included, are less than that below the best: at most `COMPARED`.
        tried: how many typos there were.
        overturned: with how many of them another of the close documents was first.
    """

    effect: float
    close: int
    tried: int
    overturned: int


def try_typos(
    ranker: Scorer, query: str, documents: Sequence[str], scores: Sequence[float], *, seed: int = 0
) -> TypoEffect | None:
    """Return what typos do to a ranking: the best document's score changes, and others may come first.

    Args:
        documents: the documents, best first; of long ones the windows that gave the scores.
        scores: the raw score of each.

    Returns None where the query has no Latin letter to mistype.
    """
    effect = typo_effect(ranker, query, documents[0], seed=seed)
    if effect is None:
        return None
    misspelt = typos(query, seed=seed)
    close = min(COMPARED, sum(scores[0] - score < effect for score in scores) or 1)
    if close < 2:
        return TypoEffect(effect, close, len(misspelt), 0)
    pairs = ranker.read([(one, document) for one in misspelt for document in documents[:close]])
    found = ranker.scores_of(pairs).reshape(len(misspelt), close)
    return TypoEffect(effect, close, len(misspelt), int((found.argmax(axis=1) != 0).sum()))
