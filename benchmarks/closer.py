"""What else is measured of an explanation: deletion, sufficiency, and whether it stays when the text hardly changes.

All by text and plain `predict`, as in signs.py; shares are of the ranking's range.

- lost: the score lost without the five document words of the largest value, and without five drawn at random.
- missing: the score missing when only a fifth of the words stays, five at least: those of the largest value, or drawn.
- typo, synonym: the share of the five strongest document words that are still the five strongest after two letters of
  another word changed places, or a common word was replaced by a synonym; and by how much that moved the score.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

WORDS = 5
SHARE = 0.2  # of the words that stay for sufficiency, at least WORDS
SPARED = 10  # strongest words, in which no typo is made
LETTERS = 5  # of a word that a typo is made in, at least
SYNONYMS = {
    "big": "large",
    "large": "big",
    "begin": "start",
    "began": "started",
    "start": "begin",
    "started": "began",
    "often": "frequently",
    "also": "too",
    "many": "numerous",
    "several": "various",
    "show": "display",
    "shows": "displays",
    "help": "assist",
    "use": "employ",
    "used": "employed",
    "make": "create",
    "made": "created",
    "need": "require",
    "needs": "requires",
    "important": "significant",
    "however": "nevertheless",
    "because": "since",
    "such": "similar",
    "usually": "normally",
    "about": "around",
    "main": "principal",
    "people": "persons",
    "small": "little",
    "different": "distinct",
    "called": "named",
    "known": "recognised",
    "find": "discover",
    "found": "discovered",
    "while": "whereas",
    "first": "initial",
    "part": "portion",
    "get": "receive",
    "given": "granted",
    "between": "among",
}

Scores = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
Explain = Callable[[str, str], object]  # a query and a document -> an `Attribution`


def closer(
    query: str, words: Sequence, document: str, explain: Explain, scores: Scores, rng: np.random.Generator
) -> dict[str, float]:
    """Return what was measured of the document words of an explanation; what does not apply to the text is missing.

    Args:
        words: of the document, each with text, start, end and value.
    """
    if len(words) <= WORDS:
        return {}
    by_value = sorted(words, key=lambda word: -word.value)
    drawn = [words[place] for place in rng.permutation(len(words)).tolist()]
    stay = max(WORDS, round(SHARE * len(words)))
    texts = {
        "lost": without(document, by_value[:WORDS]),
        "lost_random": without(document, drawn[:WORDS]),
        "missing": without(document, by_value[stay:]),
        "missing_random": without(document, drawn[stay:]),
    }
    whole, *found = scores([(query, document), *((query, text) for text in texts.values())])
    measured = dict(zip(texts, (whole - score for score in found)))
    for name, changed in (("typo", with_typo(words, document, rng)), ("synonym", with_synonym(words, document, rng))):
        if changed is not None:
            again = explain(query, changed).document.words
            if len(again) == len(words):
                measured[name] = same_strongest(words, again)
                measured[f"{name}_moved"] = abs(whole - scores([(query, changed)])[0])
    return measured


def without(text: str, words: Iterable) -> str:
    """Return a text without some of its words, and without white space that is doubled then."""
    for word in sorted(words, key=lambda word: -word.start):
        text = text[: word.start] + text[word.end :]
    return " ".join(text.split())


def with_typo(words: Sequence, text: str, rng: np.random.Generator) -> str | None:
    """Return a text in which two inner letters of a word that is not among the strongest changed places."""
    strong = {word.start for word in strongest(words, SPARED)}
    open_ones = [one for one in words if one.start not in strong and one.text.isalpha() and len(one.text) >= LETTERS]
    for number in rng.permutation(len(open_ones)).tolist():
        word = open_ones[number]
        for place in range(1, len(word.text) - 2):
            if word.text[place] != word.text[place + 1]:
                letters = list(word.text)
                letters[place], letters[place + 1] = letters[place + 1], letters[place]
                return text[: word.start] + "".join(letters) + text[word.end :]
    return None


def with_synonym(words: Sequence, text: str, rng: np.random.Generator) -> str | None:
    """Return a text in which a common word that is not among the strongest is replaced by a synonym of one word."""
    strong = {word.start for word in strongest(words, WORDS)}
    known = [one for one in words if one.start not in strong and one.text in SYNONYMS]
    if not known:
        return None
    word = known[int(rng.integers(len(known)))]
    return text[: word.start] + SYNONYMS[word.text] + text[word.end :]


def same_strongest(words: Sequence, others: Sequence) -> float:
    """Return which share of the strongest words of one explanation are those of another, by their place in the text."""
    first, second = ({place for place, _ in _numbered(some)} for some in (words, others))
    return len(first & second) / WORDS


def _numbered(words: Sequence) -> list[tuple[int, object]]:
    return sorted(enumerate(words), key=lambda entry: -abs(entry[1].value))[:WORDS]


def strongest(words: Sequence, count: int) -> list:
    """Return the words of the largest value, whatever its sign."""
    return sorted(words, key=lambda word: -abs(word.value))[:count]
