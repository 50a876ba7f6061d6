"""Parts of a pair that can be left out: the words or the sentences of its texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from backlight.explain.attribution import Attribution, Recipe, TextAttribution, Word, truncation_of, words_of
from backlight.explain.sentences import sentence_spans
from backlight.explain.words import phrase_runs
from backlight.models.pairs import DOCUMENT, QUERY, Pair

STRONGEST = {DOCUMENT: 5, QUERY: 3}  # words of each text that are measured first, checked and judged


@dataclass(frozen=True)
class Part:
    """A word or a sentence of one of a pair's texts, as far as the model read it."""

    side: int  # QUERY or DOCUMENT
    start: int  # its first character in the text
    end: int  # its last + 1
    tokens: tuple[int, ...]  # their places in the pair


def word_parts(pair: Pair, *sides: int) -> list[Part]:
    """Return the words of the query, then those of the document; or those of one side."""
    return [
        Part(side, word.start, word.end, word.tokens)
        for side in sides or (QUERY, DOCUMENT)
        for word in words_of(pair, side)
    ]


def phrase_parts(pair: Pair, *sides: int) -> list[Part]:
    """Return the phrases of the query, then those of the document: see `phrase_runs`."""
    found = []
    for side in sides or (QUERY, DOCUMENT):
        words = words_of(pair, side)
        for run in phrase_runs([pair.text(side)[word.start : word.end] for word in words]):
            own = words[run]
            found.append(Part(side, own[0].start, own[-1].end, tuple(token for word in own for token in word.tokens)))
    return found


def sentence_parts(pair: Pair, *sides: int) -> list[Part]:
    """Return the sentences of the query, then those of the document, with the words that the model read of each."""
    found = []
    for side in sides or (QUERY, DOCUMENT):
        words = words_of(pair, side)
        for start, end in sentence_spans(pair.text(side)):
            own = [word for word in words if start <= word.start < end]
            if own:
                tokens = tuple(token for word in own for token in word.tokens)
                found.append(Part(side, own[0].start, own[-1].end, tokens))
    return found


def part_words(
    pair: Pair, parts: Sequence[Part], values: Sequence[float], errors: Sequence[float] | None = None
) -> tuple[Word, ...]:
    """Return parts of a pair as `Word`s, with the value of each."""
    return tuple(
        Word(pair.text(part.side)[part.start : part.end], part.start, part.end, float(value), len(part.tokens), error)
        for part, value, error in zip(
            parts, values, [None] * len(parts) if errors is None else map(float, errors), strict=True
        )
    )


def attribute_parts(
    pair: Pair,
    parts: Sequence[Part],
    values: Sequence[float],
    recipe: Recipe,
    model: str,
    score: float,
    *,
    errors: Sequence[float] | None = None,
    gap: float | None = None,
) -> Attribution:
    """Return the explanation of a pair from one value a part (see NOTE [Words and tokens]).

    Args:
        parts: of query and document, those of a text in its order.
        errors: the standard errors of the values.
    """
    words = part_words(pair, parts, values, errors)
    texts = []
    for side in (QUERY, DOCUMENT):
        own = tuple(word for word, part in zip(words, parts) if part.side == side)
        texts.append(TextAttribution(pair.text(side), own, (), truncation_of(pair, side)))
    return Attribution(
        query=texts[0],
        document=texts[1],
        special=(),
        model=model,
        score=float(score),
        gap=gap,
        read_as=pair.read_as,
        **vars(recipe),
    )
