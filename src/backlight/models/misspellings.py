"""Words of a query that look misspelt, and the words that they are read as.

NOTE [Misspellings]
WordPiece cuts a word that it does not know into pieces that mean little, so a typo costs a query the word. A word of a
query is read as another if
    - it has `SHORTEST` letters or more, a to z, and is no part of a path, an address, an option or code;
    - it has no capital, unless all of the query is in capitals: it may be a name;
    - the vocabulary has neither it nor a word from which an English ending makes it, or which it makes with one, nor
      is it, or such a word, in `KNOWN_WORDS`: correct words that would be taken for others ("starch" for "search");
    - one letter more, less or another, or two neighbours swapped, make it a whole word of the vocabulary, and neither
      the first nor the last letter differs, unless by such a swap: endings are inflections, not typos;
    - of several such words one is by far the most frequent: a vocabulary lists frequent words first, and no other's
      number may be below `CLEARLY` times its own;
    - the document does not have the word as it is written, whatever ending it has there: a rare word, a name or a
      command that both share is read as it is;
    - the query does not look to be in another language than English.
So what is read is decided by the pair alone. Nothing is read in another way before an empty document. What was read in
place of what is in `Pair.read_as`, and whatever is shown says so. How much it regains and costs: docs/reranker.md.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backlight.errors import InputError
from backlight.models.languages import other_language
from backlight.models.tokens import Tokenizer

KNOWN_WORDS = Path(__file__).with_name("known_words.txt")  # tools/known_words.py writes it
SHORTEST = 5  # letters of a word that is read as another
CLEARLY = 2.7  # times as high must the number of the next most frequent word be
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD = re.compile(r"(?<![\w./@\\:+~$%#-])(?<!\w['’])[A-Za-z]+(?![\w@\\/+(=]|[.:-]\w|['’](?!s\b)\w)")
INFLECTIONS = ("s", "d", "ed", "es", "ing", "r", "er", "ly")  # that may make a word of the vocabulary
SUFFIXES = """
s es ed d ing ly er r ers y al ity ness less ful ism ist ists able ment est ally ian ize ized ise ised
"""
ENDINGS = tuple(SUFFIXES.split())  # that may make a word from one of the vocabulary
CONTINUED = "##s"  # a token that every WordPiece vocabulary has


@dataclass(frozen=True)
class Misspelling:
    """A word of a query that is read as another (see NOTE [Misspellings])."""

    text: str  # as it is written
    start: int  # its first character in the query
    end: int  # its last + 1
    read_as: str


class Speller:
    """Finds misspelt words by the vocabulary of a WordPiece tokenizer (see NOTE [Misspellings]).

    Args:
        tokenizer: of the model.
        known: words that are correct though the vocabulary lacks them; those of `KNOWN_WORDS` by default.

    Raises:
        InputError: the tokenizer has another kind of vocabulary.
    """

    def __init__(self, tokenizer: Tokenizer, known: frozenset[str] | None = None):
        if not tokenizer.knows(CONTINUED):
            raise InputError(
                "read_typos must be left out: only a vocabulary of WordPiece, as BERT's, lists whole words by frequency"
            )
        self._number_of = tokenizer.number_of
        self.known = known_words() if known is None else known

    def misspellings(self, query: str) -> tuple[Misspelling, ...]:
        """Return the words of a query that are read as others, in its order, where no document has them."""
        found = []
        for word in WORD.finditer(query):
            read_as = self.read_as(word[0].lower()) if _may_be_misspelt(word, query) else None
            if read_as:
                found.append(Misspelling(word[0], word.start(), word.end(), read_as))
        return () if found and other_language(query) else tuple(found)

    def read_as(self, word: str) -> str | None:
        """Return the word of the vocabulary that a word, in lower case, is read as; None for itself."""
        if self._is_known(word):
            return None
        numbers = {other: self._number_of(other) for other in set(_one_edit_away(word)) if _same_ends(word, other)}
        found = sorted((number, other) for other, number in numbers.items() if number is not None)
        if not found or (len(found) > 1 and found[1][0] < CLEARLY * found[0][0]):
            return None
        return found[0][1]

    def _is_known(self, word: str) -> bool:
        """Return whether the vocabulary has a word, or one that differs from it by an ending alone."""
        return any(other in self.known or self._number_of(other) is not None for other in _related(word))


@cache
def known_words() -> frozenset[str]:
    """Return the words of `KNOWN_WORDS`."""
    lines = KNOWN_WORDS.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def _may_be_misspelt(word: re.Match, query: str) -> bool:
    """Return whether a word is long enough, and no name as far as capitals tell."""
    return len(word[0]) >= SHORTEST and (word[0].islower() or query.isupper())


def _related(word: str) -> Iterator[str]:
    """Give a word, those that it makes with an ending, and those that an ending may make it from."""
    yield word
    yield from (word + ending for ending in INFLECTIONS)
    if word.endswith("e"):
        yield f"{word[:-1]}ing"
    for ending in ENDINGS:
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < 3:
            continue
        yield rest
        yield f"{rest}e"
        if len(rest) > 3 and rest[-1] == rest[-2]:
            yield rest[:-1]  # stopped
        if ending in ("es", "ed") and rest.endswith("i"):
            yield f"{rest[:-1]}y"  # carried


def _one_edit_away(word: str) -> Iterator[str]:
    """Give what a letter more, less or another, or two neighbours swapped, make of a word.

    Source: Damerau, A technique for computer detection and correction of spelling errors, 1964,
        doi:10.1145/363958.363994.
    """
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in LETTERS:
            yield before + letter + after
            yield before + letter + after[1:]


def _same_ends(word: str, other: str) -> bool:
    """Return whether two words, not the same, begin and end alike, or with two letters swapped there."""
    begin = word[0] == other[0] or word[:2] == other[1::-1]
    end = word[-1] == other[-1] or word[-2:] == other[:-3:-1]
    return begin and end and word != other


def written_in(document: str, word: str) -> bool:
    """Return whether a document has a word as it is written, whatever its ending.

    >>> written_in("Wilms tumours of the kidney", "tumour"), written_in("a costumer", "tumer")
    (True, False)
    """
    stem = word.removesuffix("s")
    return re.search(rf"(?<![A-Za-z]){stem}", document, re.IGNORECASE) is not None


def as_read(query: str, misspellings: Sequence[Misspelling]) -> str:
    """Return a query with the words that are read in place of its own.

    >>> as_read("a refnud of it", [Misspelling("refnud", 2, 8, "refund")])
    'a refund of it'
    """
    parts, done = [], 0
    for one in misspellings:
        parts += [query[done : one.start], one.read_as]
        done = one.end
    return "".join([*parts, query[done:]])


def places_as_written(offsets: Sequence[Sequence[int]], misspellings: Sequence[Misspelling]) -> list[tuple[int, int]]:
    """Return where parts of a query as it is read stand in the query as it is written.

    A part of a word that is read as another has all of the word as it is written.

    Args:
        offsets: first and last + 1 character of each part in what `as_read` returns.
    """
    found = []
    for start, end in offsets:
        shift, whole = 0, None
        for one in misspellings:
            first = one.start + shift
            if end <= first:
                break
            if start < first + len(one.read_as):
                whole = one.start, one.end
                break
            shift += len(one.read_as) - (one.end - one.start)
        found.append(whole or (start - shift, end - shift))
    return found
