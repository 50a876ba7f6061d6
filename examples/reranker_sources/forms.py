"""The forms in which one query may be put: keywords, without its question mark, mistyped, as a claim, in synonyms."""

import re
from collections.abc import Mapping

import numpy as np

from backlight.explain.typos import typos
from reranker_sources.passages import STOPWORDS, WORD, words_of

LITTLE = "many much does kind name type called used use get make way please tell"  # words that only make a question
ASKED_AWAY = STOPWORDS.union(LITTLE.split())
SHARES = {"as it is": 0.5, "keywords": 0.14, "unmarked": 0.09, "typos": 0.13, "claim": 0.08, "synonyms": 0.06}
WH = re.compile(  # what the answer stands for, where the rest of the question is in the order of a statement
    r"^(?:who|(?:what|which)(?: \w+)?)\s+(?=\w{3,}ed\b|(?:is|was|are|were) the \w+ (?:of|in|for)\b)", re.IGNORECASE
)


def other_form(
    query: str, answers: tuple[str, ...], words: Mapping[str, str], rng: np.random.Generator
) -> tuple[str, str]:
    """Return a query in a form drawn by `SHARES`, and the form's name; as it is, where it has no such form.

    Args:
        answers: texts of the answer, for a claim.
        words: each with another word of the same sense.
    """
    name = str(rng.choice(list(SHARES), p=list(SHARES.values())))
    made = {
        "as it is": lambda: query,
        "keywords": lambda: keywords(query),
        "unmarked": lambda: unmarked(query),
        "typos": lambda: mistyped(query, rng),
        "claim": lambda: claim(query, answers[0]) if answers else query,
        "synonyms": lambda: in_other_words(query, words),
    }[name]()
    return (made, name) if made != query else (query, "as it is")


def keywords(query: str) -> str:
    """Return a query's words without those that only make it a question; unchanged where fewer than two are left.

    >>> keywords("What was the price of oil in March of 1974?")
    'price oil March 1974'
    """
    kept = [word for word in WORD.findall(query) if word.casefold() not in ASKED_AWAY]
    return " ".join(kept) if len(kept) >= 2 else query


def unmarked(query: str) -> str:
    """Return a query in lower case and without its question mark."""
    return query.rstrip(" ?.").lower()


def mistyped(query: str, rng: np.random.Generator) -> str:
    """Return a query with one or two typos: a letter replaced, left out, doubled, or two letters in the wrong order."""
    for _ in range(int(rng.integers(1, 3))):
        places = [match.start() for match in re.finditer(r"(?<=[A-Za-z])[A-Za-z](?=[A-Za-z])", query)]
        kind = int(rng.integers(4))
        if kind == 0 or not places:
            query = next(iter(typos(query, 1, int(rng.integers(2**31)))), query)
            continue
        at = int(rng.choice(places))
        changed = ("", query[at] * 2, query[at + 1] + query[at])[kind - 1]
        query = query[:at] + changed + query[at + (2 if kind == 3 else 1) :]
    return query


def claim(query: str, answer: str) -> str:
    """Return a question with its answer as a statement; unchanged where the question is not of a simple form.

    >>> claim("Who proclaimed the oil embargo?", "OAPEC")
    'OAPEC proclaimed the oil embargo.'
    """
    if len(answer.split()) > 12:
        return query
    made, count = WH.subn(lambda _: f"{answer} ", query.strip())
    return f"{made.rstrip(' ?')}." if count else query


def in_other_words(query: str, words: Mapping[str, str]) -> str:
    """Return a query with the words that have one sense alone replaced by others of that sense."""
    return WORD.sub(lambda match: words.get(match[0].casefold(), match[0]), query)


def content_words(query: str) -> list[str]:
    """Return a query's words that are not function words, in lower case, each once."""
    return [word for word in dict.fromkeys(words_of(query)) if word not in ASKED_AWAY]
