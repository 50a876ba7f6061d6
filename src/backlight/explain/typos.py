"""How much one typo in the query changes a score: what separates documents by less is not a difference to trust."""

import numpy as np

from backlight.explain.words import word_spans
from backlight.models.scorer import Scorer

TYPOS = 3  # one-letter typos whose effect is averaged
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
