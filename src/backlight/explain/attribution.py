"""Explanations as data: small frozen dataclasses, which `dataclasses.asdict` turns into JSON.

NOTE [Words and tokens]
A method gives each token a value, and a word's value is the sum over its tokens: for signed methods that is the word's
contribution as a whole. Tokens that the tokenizer or a prompt added ([CLS], [SEP]) belong to no text and are listed
separately in `special`. A method that removes words has no values for tokens: its `tokens` are empty.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from backlight.explain.notebook import attribution_html, ranking_html, summary
from backlight.explain.presentation.tables import Tabular, word_rows
from backlight.explain.words import WordTokens, each_word, is_mark, tokens_by_word
from backlight.models.misspellings import Misspelling
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, Pair
from backlight.models.retrieval.index import Retrieval
from backlight.models.scorer import Execution

STRONGEST = 5  # words that a row of a table names


@dataclass(frozen=True)
class Word:
    """A word of a text, with its importance."""

    text: str
    start: int  # its first character in the text
    end: int  # its last + 1
    value: float  # the sum over its tokens
    tokens: int  # how many tokens it consists of
    error: float | None = None  # standard error of the value, if it was estimated from samples
    effect: float | None = None  # score − score without the word, if that was measured

    @property
    def is_mark(self) -> bool:
        """Whether it is punctuation (has neither letter nor digit), which is listed after the words."""
        return is_mark(self.text)


@dataclass(frozen=True)
class Token:
    """A token as the model read it, with its importance."""

    text: str  # as the vocabulary spells it
    start: int
    end: int
    value: float


@dataclass(frozen=True)
class Truncation:
    """How much of a text the model did not read."""

    tokens_read: int
    tokens_left_out: int
    words_left_out: int
    first_character: int  # of what was read; not 0 in a later window of a long document
    characters_read: int  # the last character of what was read, + 1

    def __bool__(self) -> bool:
        return self.tokens_left_out > 0


@dataclass(frozen=True)
class Window:
    """The part of a long document that gave its score."""

    how: str  # "best" or "mean"
    number: int | None  # which window, from 1; None for the mean
    of: int  # how many windows there are
    first_character: int
    last_character: int  # + 1
    read: int  # how many of the windows were scored
    chosen_by: str | None = None  # how these were chosen: "BM25" or "evenly spread"; None where all were scored
    effects_of: str = "document"  # whose score words' measured effects are of: "document", or this "window" alone


@dataclass(frozen=True)
class TextAttribution:
    """One text with the importance of the words and tokens that the model read."""

    text: str
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    truncation: Truncation

    def strongest(self, count: int | None = None) -> list[Word]:
        """Return the words with the largest absolute values, largest first; by default all.

        If a method measures some words and estimates the others, the measured ones come first; punctuation comes last.
        """
        estimates = any(word.effect == word.value for word in self.words)
        return sorted(self.words, key=lambda word: (word.is_mark, estimates and word.effect is None, -abs(word.value)))[
            :count
        ]

    def share(self, word: Word) -> float:
        """Return a word's importance as a share of the strongest word's: from -1 to 1."""
        most = max(abs(other.value) for other in self.words)
        return word.value / most if most else 0.0

    def segments(self) -> Iterator[tuple[str, Word | None]]:
        """Yield the text, as far as the model read it, as words and the pieces between them."""
        done = self.truncation.first_character
        for word in self.words:
            if word.start > done:
                yield self.text[done : word.start], None
            yield word.text, word
            done = word.end
        if done < self.truncation.characters_read:
            yield self.text[done : self.truncation.characters_read], None


@dataclass(frozen=True)
class Joint:
    """Words that were removed together, because they may act only together: a name, a phrase."""

    words: tuple[Word, ...]  # of one text, in its order
    effect: float  # score − score without all of them
    alone: float  # the sum of their effects one by one
    of_query: bool = False  # whether they are the query's words


@dataclass(frozen=True)
class Check:
    """How the score changes when the strongest words of an explanation are removed (see NOTE [The check]).

    Args:
        by: how words are removed, a key of `WAYS` in explain/methods/ablation.py.
        words: how many of the strongest words of both texts were removed one by one.
        counted: how many of these change the score by at least `threshold`, so that they have a sign.
        signs: how many of these have the sign that is shown; None for an unsigned method.
        threshold: 2 % of the range of scores, of the ranking or of the pair.
        top: how many of the document's strongest words were removed together.
        drop: score − score without them.
        random: the mean of the same for as many words drawn at random.
        total: score − score without any word of the document; None if the model cannot score such a pair.
        verdict: "holds", "fails", or "no effect" if no removal reaches the threshold.
        passes: how many pairs were scored for the check.
    """

    by: str
    words: int
    counted: int
    signs: int | None
    threshold: float
    top: int
    drop: float
    random: float
    total: float | None
    verdict: str
    passes: int


@dataclass(frozen=True)
class Recipe:
    """How values were made: what explanations by one method have in common (see `Attribution`)."""

    method: str
    meaning: str
    signed: bool = False
    baseline: str | None = None
    passes: float = 1
    settings: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attribution(Tabular):
    """Why a model gave one pair of query and document its score.

    Args:
        method: the method's name.
        meaning: what the values mean, in words or as a formula.
        model: the model's name.
        score: the raw score that is explained.
        query, document: the texts with the values of their words.
        special: the special tokens, which belong to neither text.
        signed: whether values have a sign: + for words that raise the score, − for words that lower it.
        baseline: the baseline that the input was compared with; None for methods without one.
        gap: Σ values − (score − the baseline's score), in units of the score; None for methods that guarantee no sum.
        passes: how many times the pair went through the model, forward or backward.
        settings: the options of the method by name: steps, samples, seed …
        fallback: whether another method was used instead; always False.
        estimate: the method that estimated the values of words without an `effect`, scaled to those with one; None if
            all values are by `method`.
        together: words whose joint effect is larger or smaller than the sum of their single effects.
        check: how the score changes without the strongest words; None if that was not checked.
        window: which window of the document was explained; None if it was not read in windows.
        execution: how the model ran, if not on backlight's engine on the CPU.
        read_as: words of the query that were corrected; values are attributed to the words as written.
    """

    method: str
    meaning: str
    model: str
    score: float
    query: TextAttribution
    document: TextAttribution
    special: tuple[Token, ...]
    signed: bool = False
    baseline: str | None = None
    gap: float | None = None
    passes: float = 1
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    fallback: bool = False
    estimate: str | None = None
    together: tuple[Joint, ...] = ()
    check: Check | None = None
    window: Window | None = None
    execution: Execution | None = None
    read_as: tuple[Misspelling, ...] = ()

    def rows(self) -> list[dict]:
        """Return one row per word: its text, position, value, error, measured effect and number of tokens."""
        return word_rows({"query": self.query.words, "document": self.document.words})

    def __repr__(self) -> str:
        return summary("Attribution", f"{self.method} of {self.score:.4g}", self.document.strongest(3))

    def _repr_html_(self) -> str:
        return attribution_html(self)


@dataclass(frozen=True)
class Ranked:
    """One document of a ranking, with its explanation if one was requested."""

    rank: int  # 1 for the best
    name: str
    index: int  # its position in the input
    text: str
    score: float  # the raw score
    activated: float  # the score after the model's activation
    truncation: Truncation  # how much of the document the model did not read
    attribution: Attribution | None
    window: Window | None = None  # which window of a long document gave the score, if it was read in windows
    read_as: tuple[Misspelling, ...] = ()  # words of the query that were corrected


@dataclass(frozen=True)
class NotReranked:
    """A document of a long list that the model did not score, because it was not a candidate."""

    rank: int  # below all documents that were reranked, in the retriever's order
    name: str
    index: int  # its position in the input
    text: str


@dataclass(frozen=True)
class OtherLanguage:
    """A text that appears to be in a language that the model does not read."""

    text: str  # "the query", or the document's name
    language: str


@dataclass(frozen=True)
class Ranking(Tabular):
    """Documents ranked for a query, best first: all of them, or the candidates of a long list and then the rest."""

    query: str
    model: str
    score_name: str
    method: str
    max_tokens: int  # how many tokens of a text the model reads
    documents: tuple[Ranked, ...]
    retrieval: Retrieval | None = None  # how candidates were chosen; None where every document was reranked
    not_reranked: tuple[NotReranked, ...] = ()  # in the retriever's order; the model did not score them
    other_languages: tuple[OtherLanguage, ...] = ()  # for a model that reads English only
    threshold: float | None = None  # the activated score from which a document answers, if the model defines one
    query_truncation: Truncation | None = None  # how much of the query was not read with the best document

    @property
    def answered(self) -> bool | None:
        """Whether a document reaches the model's threshold; None where the model has none."""
        return None if self.threshold is None else any(one.activated >= self.threshold for one in self.documents)

    def mean_query(self) -> TextAttribution:
        """Return the query with each word's importance averaged over the documents that were explained."""
        pairs = [ranked.attribution for ranked in self.documents if ranked.attribution is not None]
        words = tuple(
            replace(same[0], value=sum(word.value for word in same) / len(same))
            for same in zip(*(pair.query.words for pair in pairs))
        )
        return replace(pairs[0].query, words=words)

    def rows(self) -> list[dict]:
        """Return one row per document: its rank, name, position in the input, scores, text and strongest words.

        Documents that were not reranked follow, without scores.
        """
        reranked = [
            {
                "rank": ranked.rank,
                "name": ranked.name,
                "index": ranked.index,
                "score": ranked.score,
                "activated": ranked.activated,
                "text": ranked.text,
                "words_left_out": ranked.truncation.words_left_out,
                "strongest": [word.text for word in ranked.attribution.document.strongest(STRONGEST)]
                if ranked.attribution
                else [],
            }
            for ranked in self.documents
        ]
        unknown = {"score": None, "activated": None, "words_left_out": None, "strongest": []}
        return reranked + [
            {"rank": one.rank, "name": one.name, "index": one.index, "text": one.text, **unknown}
            for one in self.not_reranked
        ]

    def __repr__(self) -> str:
        best = "".join(f", the best {one.name} {one.score:.4g}" for one in self.documents[:1])
        rest = f", {len(self.not_reranked)} not reranked" if self.not_reranked else ""
        return f"Ranking({len(self.documents)} documents for {self.query!r} by {self.model}{best}{rest})"

    def _repr_html_(self) -> str:
        return ranking_html(self)


def attribute_pair(
    pair: Pair, values: Sequence[float] | np.ndarray, recipe: Recipe, model: str, score: float, gap: float | None = None
) -> Attribution:
    """Return the explanation of a pair from one value per token, (tokens,), in the pair's order."""
    values = np.asarray(values, np.float64)
    query, document = (attribute_text(pair, side, values) for side in (QUERY, DOCUMENT))
    special = tuple(Token(pair.pieces[place], 0, 0, float(values[place])) for place in pair.of_side(ADDED).tolist())
    return Attribution(
        query=query,
        document=document,
        special=special,
        model=model,
        score=float(score),
        gap=gap,
        read_as=pair.read_as,
        **vars(recipe),
    )


def attribute_text(pair: Pair, side: int, values: np.ndarray) -> TextAttribution:
    """Return a text of a pair with the importance of each token, summed over the tokens of each word."""
    places, text = pair.of_side(side), pair.text(side)
    offsets, own = pair.offsets[places].tolist(), values[places].tolist()
    words = tuple(
        Word(text[word.start : word.end], word.start, word.end, sum(own[i] for i in word.tokens), len(word.tokens))
        for word in tokens_by_word(text, offsets)
    )
    tokens = tuple(Token(pair.pieces[place], *offset, value) for place, offset, value in zip(places, offsets, own))
    return TextAttribution(text, words, tokens, truncation_of(pair, side))


def words_of(pair: Pair, side: int) -> list[WordTokens]:
    """Return the words of a text of a pair, each with the places of its tokens in the pair."""
    places = pair.of_side(side)
    return [
        WordTokens(word.start, word.end, tuple(places[list(word.tokens)].tolist()))
        for word in tokens_by_word(pair.text(side), pair.offsets[places].tolist())
    ]


def truncation_of(pair: Pair, side: int) -> Truncation:
    """Return how much of a text was left out.

    A word that was read in part counts as read; punctuation does not count as a word.
    """
    first, last = pair.characters_read(side)
    left_out = pair.left_out[side]
    text = pair.text(side)
    outside = (text[a:b] for a, b in each_word(text) if b <= first or a >= last) if left_out else ()
    unread = sum(not is_mark(word) for word in outside)
    return Truncation(len(pair.of_side(side)), left_out, unread, first, last)
