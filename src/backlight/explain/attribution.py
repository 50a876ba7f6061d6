"""What an explanation says, as data: small frozen records, which `dataclasses.asdict` turns into JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from backlight.explain.words import tokens_by_word, word_spans
from backlight.models.tokens import Tokens


@dataclass(frozen=True)
class Word:
    """A word of a text, with its importance."""

    text: str
    start: int  # its first character in the text
    end: int  # its last + 1
    value: float  # the sum over its tokens
    tokens: int  # how many tokens it consists of


@dataclass(frozen=True)
class Token:
    """A token as the model read it, with its importance."""

    text: str  # as the vocabulary spells it
    start: int
    end: int
    value: float
    special: bool  # whether the tokeniser added it


@dataclass(frozen=True)
class Truncation:
    """How much of a text the model did not read."""

    tokens_read: int
    tokens_left_out: int
    words_left_out: int
    characters_read: int

    def __bool__(self) -> bool:
        return self.tokens_left_out > 0


@dataclass(frozen=True)
class TextAttribution:
    """One text, and the importance of its words and tokens.

    `words` holds words that the model read. Tokens that belong to no word, such as [CLS], stand only in `tokens`.
    """

    text: str
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    truncation: Truncation

    @property
    def special(self) -> tuple[Token, ...]:
        """The tokens that the tokeniser added."""
        return tuple(token for token in self.tokens if token.special)

    def strongest(self, count: int | None = None) -> list[Word]:
        """Return the most important words, most important first; all by default."""
        return sorted(self.words, key=lambda word: -word.value)[:count]

    def share(self, word: Word) -> float:
        """Return a word's importance as a share of the strongest word's: from 0 to 1."""
        most = max(other.value for other in self.words)
        return word.value / most if most else 0.0

    def segments(self) -> Iterator[tuple[str, Word | None]]:
        """Cut the text, as far as the model read it, into words and what stands between them."""
        done = 0
        for word in self.words:
            if word.start > done:
                yield self.text[done : word.start], None
            yield word.text, word
            done = word.end
        if done < self.truncation.characters_read:
            yield self.text[done : self.truncation.characters_read], None


@dataclass(frozen=True)
class Attribution:
    """Why a model gave one pair of query and document its score.

    Args:
        method: how the importances were computed.
        model: the model's name.
        score: the score that is explained.
        baseline: what the inputs were compared with; None for methods that compare with nothing.
        fallback: whether another method stood in; no method of backlight ever lets another stand in.
    """

    method: str
    model: str
    score: float
    query: TextAttribution
    document: TextAttribution
    baseline: str | None = None
    fallback: bool = False


@dataclass(frozen=True)
class Ranked:
    """One document's place in a ranking, with its explanation if one was asked for."""

    rank: int  # 1 for the best
    name: str
    index: int  # its place in what was given
    score: float
    truncation: Truncation  # how much of the document the score does not know
    attribution: Attribution | None


@dataclass(frozen=True)
class Ranking:
    """All documents for a query, best first."""

    query: str
    model: str
    score_name: str
    method: str
    max_tokens: int  # how many tokens of a text the model reads
    documents: tuple[Ranked, ...]

    def mean_query(self) -> TextAttribution:
        """Return the query with each word's importance averaged over the documents that were explained."""
        pairs = [ranked.attribution for ranked in self.documents if ranked.attribution is not None]
        words = tuple(
            replace(same[0], value=sum(word.value for word in same) / len(same))
            for same in zip(*(pair.query.words for pair in pairs))
        )
        return replace(pairs[0].query, words=words)


def attribute_text(tokens: Tokens, values: Sequence[float]) -> TextAttribution:
    """Return a text with the importance of each token, summed over the tokens of each word.

    Args:
        tokens: the text as it was read.
        values: one importance a token.
    """
    places, text = tokens.offsets.tolist(), tokens.text
    values = [float(value) for value in values]
    words = tuple(
        Word(
            text=text[word.start : word.end],
            start=word.start,
            end=word.end,
            value=sum(values[token] for token in word.tokens),
            tokens=len(word.tokens),
        )
        for word in tokens_by_word(text, places)
    )
    read = tuple(
        Token(piece, start, end, value, bool(special))
        for piece, (start, end), value, special in zip(tokens.pieces, places, values, tokens.special)
    )
    return TextAttribution(text, words, read, truncation_of(tokens))


def truncation_of(tokens: Tokens) -> Truncation:
    """Return how much of a text was left out. A word that was read in part counts as read."""
    left_out = sum(start >= tokens.characters_read for start, _ in word_spans(tokens.text)) if tokens.left_out else 0
    return Truncation(len(tokens), tokens.left_out, left_out, tokens.characters_read)
