"""Words of a text, and which of a tokenizer's tokens make up each.

NOTE [What a word is]
A run without whitespace, with punctuation split off: `(see` is `(` and `see`. Apostrophes, hyphens and full stops
between letters join (`don't`, `rain-soaked`, `e.g`), commas and colons between digits (`1,000`, `12:30`). The same mark
repeated is one word (`...`), and each Chinese or Japanese ideograph is one, as nothing separates them. How a run is
split depends on the run alone, so the runs of a text that are met again and again are split once.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

RUN = re.compile(r"\S+")
IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
BETWEEN_LETTERS = set("'’-‐‑.·_&@")
BETWEEN_DIGITS = set(",:")
RUNS_KEPT = 1 << 14  # runs whose words are remembered
LONGEST_KEPT = 64  # characters of such a run, at most
RUN_AROUND = 1000  # characters of a run without white space that are looked at beyond a part of a text
PHRASE = 4  # words of a phrase at most
ENGLISH_FUNCTION_WORDS = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
further get had hadn't has hasn't have haven't having he her here hers herself him himself his how i i'm if in into
is isn't it it's its itself just let's me more most my myself no nor not of off on once only or other our ours
ourselves out over own same she should shouldn't so some such than that that's the their theirs them themselves then
there these they this those through to too under until up upon very was wasn't we were weren't what when where which
while who whom whose why will with won't would wouldn't you your yours yourself yourselves
"""
FUNCTION_WORDS = frozenset(ENGLISH_FUNCTION_WORDS.split())


@dataclass(frozen=True)
class WordTokens:
    """A word's place in its text, and the tokens that it consists of."""

    start: int
    end: int
    tokens: tuple[int, ...]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return first and last + 1 character of each word (see NOTE [What a word is]).

    >>> [text[a:b] for text in ["It's 1,000 km (or so)."] for a, b in word_spans(text)]
    ["It's", '1,000', 'km', '(', 'or', 'so', ')', '.']
    """
    return list(each_word(text))


def each_word(text: str) -> Iterator[tuple[int, int]]:
    """Give first and last + 1 character of each word, as `word_spans` returns them."""
    for found in RUN.finditer(text):
        (first, end), run = found.span(), found[0]
        if run.isascii() and run.isalnum():
            yield first, end
        else:
            words = _remembered(run) if len(run) <= LONGEST_KEPT else _words_of_run(run)
            for start, stop in words:
                yield first + start, first + stop


def words_around(text: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return first and last + 1 character of each word that has characters in a part of a text.

    A run without white space is looked at for `RUN_AROUND` characters beyond the part.
    """
    start, end = max(first - RUN_AROUND, 0), min(last + RUN_AROUND, len(text))
    before, after = text[start:first], text[last:end]
    start = first - len(before) + next((i + 1 for i in range(len(before) - 1, -1, -1) if before[i].isspace()), 0)
    end = last + next((i for i, character in enumerate(after) if character.isspace()), len(after))
    spans = ((start + a, start + b) for a, b in each_word(text[start:end]))
    return [(a, b) for a, b in spans if b > first and a < last]


def _words_of_run(run: str) -> Iterator[tuple[int, int]]:
    """Give first and last + 1 character of each word of a run without whitespace."""
    start = 0
    for place in range(1, len(run)):
        if not _joined(run, place):
            yield start, place
            start = place
    yield start, len(run)


@lru_cache(RUNS_KEPT)
def _remembered(run: str) -> tuple[tuple[int, int], ...]:
    return tuple(_words_of_run(run))


def _joined(text: str, place: int) -> bool:
    """Return whether the characters on both sides of a place belong to one word."""
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M":
        return True
    if IDEOGRAPH.match(before) or IDEOGRAPH.match(after):
        return False
    if _is_mark(before) and _is_mark(after):
        return before == after
    if _is_mark(after):
        return _joins(text, place)
    if _is_mark(before):
        return _joins(text, place - 1)
    return True


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _joins(text: str, place: int) -> bool:
    """Return whether the mark at a place joins what stands before and after it."""
    if place == 0 or place + 1 == len(text):
        return False
    before, mark, after = text[place - 1 : place + 2]
    if mark in BETWEEN_DIGITS:
        return before.isdigit() and after.isdigit()
    return mark in BETWEEN_LETTERS and before.isalnum() and after.isalnum()


def is_mark(text: str) -> bool:
    """Return whether a word has neither letter nor digit: punctuation or another sign."""
    return not any(character.isalnum() for character in text)


def phrase_runs(words: Sequence[str]) -> list[slice]:
    """Return runs of words that make phrases: at most `PHRASE` words between function words and punctuation.

    Function words that follow each other are a run too, and each mark is one. (Candidates of keywords are cut so in
    Rose, Engel, Cramer, Cowley, Automatic Keyword Extraction from Individual Documents, 2010.)

    >>> phrase_runs("the old lighthouse keeper of Brest , who slept".split())
    [slice(0, 1, None), slice(1, 4, None), slice(4, 5, None), slice(5, 6, None), slice(6, 7, None), \
slice(7, 8, None), slice(8, 9, None)]
    """
    kinds = ["mark" if is_mark(word) else "function" if word.lower() in FUNCTION_WORDS else "phrase" for word in words]
    runs: list[slice] = []
    for place, kind in enumerate(kinds):
        last = runs[-1] if runs else None
        joins = last is not None and kind != "mark" and kinds[last.start] == kind and place - last.start < PHRASE
        if joins:
            runs[-1] = slice(last.start, place + 1)
        else:
            runs.append(slice(place, place + 1))
    return runs


def tokens_by_word(text: str, offsets: Sequence[Sequence[int]]) -> list[WordTokens]:
    """Return the words that tokens were made from, each with its tokens.

    A token belongs to the word that its characters lie in; a token that reaches over several words makes them one.
    Tokens without characters (special ones, bare spaces) belong to none, and words without tokens are not returned.

    Args:
        offsets: first and last + 1 character of each token.
    """
    places = [place for place in offsets if place[0] < place[1]]
    first, last = min((place[0] for place in places), default=0), max((place[1] for place in places), default=0)
    spans = words_around(text, first, last)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    words: list[list] = []  # [first span, last span, tokens], in the order of the text
    for token, (start, end) in enumerate(offsets):
        first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
        if first > last or start >= end:
            continue
        if words and first <= words[-1][1]:
            words[-1][1] = max(words[-1][1], last)
            words[-1][2].append(token)
        else:
            words.append([first, last, [token]])
    return [WordTokens(spans[first][0], spans[last][1], tuple(tokens)) for first, last, tokens in words]
