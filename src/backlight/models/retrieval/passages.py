"""Cut documents into passages: what is retrieved. A document counts by its best passage."""

import re
from collections.abc import Iterator

WORDS = 150  # of a passage, at most: about 200 tokens of English, which most bi-encoders read whole
CHARACTERS = 1200  # of a passage, about: scripts that put no spaces between words
PIECE = re.compile(r"\S{1,60}")  # a word, or a part of a run without spaces


def passages_of(text: str, words: int = WORDS, characters: int = CHARACTERS) -> Iterator[str]:
    """Give a text's passages in their order, as they stand in it; one at least.

    >>> list(passages_of("The tides follow the Moon.", words=2))
    ['The tides', 'follow the', 'Moon.']
    """
    start, end, count = None, 0, 0
    for piece in PIECE.finditer(text):
        if start is not None and (count == words or piece.end() - start > characters):
            yield text[start:end]
            start, count = None, 0
        start = piece.start() if start is None else start
        end, count = piece.end(), count + 1
    yield text if start is None else text[start:end]
