"""Cuts texts into sentences and passages."""

import re

from reranker_sources.source import digest

SENTENCE_END = re.compile(r"(?<=[.!?])[\"”)]?\s+(?=[\"“(]?[A-Z0-9])")
LENGTHS = (40, 80, 120, 120, 180, 180, 350)  # words of a passage, about; a text's own are chosen by its hash
WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text.

    >>> sentences_of("It rains. Take an umbrella! It costs 3.50 here.")
    ['It rains.', 'Take an umbrella!', 'It costs 3.50 here.']
    """
    return [one for one in SENTENCE_END.split(" ".join(text.split())) if one]


def passages_of(text: str, lengths: tuple[int, ...] = LENGTHS) -> list[str]:
    """Return a text in passages of whole sentences, each of about as many words as one of `lengths`.

    Which one depends on the text alone.
    """
    target = lengths[digest(text) % len(lengths)]
    passages, held = [], ""
    for sentence in sentences_of(text):
        held = f"{held} {sentence}".strip()
        if len(held.split()) >= target:
            passages, held = [*passages, held], ""
    if held and passages and len(held.split()) < target / 3:
        passages[-1] = f"{passages[-1]} {held}"
    elif held:
        passages.append(held)
    return passages


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.casefold() for word in WORD.findall(text)]


def overlap(text: str, other: str) -> float:
    """Return how many of the words of two texts, taken together, are in both."""
    words, others = set(words_of(text)), set(words_of(other))
    return len(words & others) / max(1, len(words | others))


def coverage(query: str, text: str) -> float:
    """Return the share of the query's words, function words apart, that a text holds."""
    words = set(words_of(query)) - STOPWORDS
    return len(words & set(words_of(text))) / max(1, len(words))


FUNCTION_WORDS = """
a about after all also an and any are as at be because been before being between both but by can could did do
does doing done during each for from had has have having he her hers him his how i if in into is it its itself
just me more most my no nor not of off on once only or other our out over own same she should so some such
than that the their them then there these they this those through to too under until up upon very was we were
what when where which while who whom whose why will with would you your
"""
STOPWORDS = frozenset(FUNCTION_WORDS.split())
