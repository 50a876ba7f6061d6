"""What is said of an explanation in plain sentences, the same in the terminal, on the page and in a notebook."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from backlight.explain.presentation.scales import (
    NO_EFFECT,
    Explained,
    Ran,
    RankedDocuments,
    Scored,
    TextInOtherLanguage,
    ValuedWord,
    activation_of,
    look_of,
)
from backlight.explain.presentation.scores import unit_of, write_scores
from backlight.models.misspellings import Misspelling
from backlight.models.retrieval.index import Retrieval
from backlight.report.text import digits_for, number

JOINTS = 3  # sets of words that are listed
WINDOW_ALONE = "word effects are for this window only: without a word, another window may score higher"


class WindowRead(Protocol):
    """Which windows of a document were scored."""

    of: int
    read: int
    chosen_by: str | None


class Answering(RankedDocuments, Protocol):
    """A `Ranking`, by a model that may say from which score a document answers."""

    model: str
    threshold: float | None

    @property
    def answered(self) -> bool | None: ...


class TypoEffect(Protocol):
    """What typos in the query did (see `try_typos` in explain/typos.py)."""

    effect: float
    close: int
    tried: int
    overturned: int


class Search(Protocol):
    """A `Tried`."""

    words: int
    sets: int
    spent: bool


class Compared(Protocol):
    """A `Comparison`, as far as the search for a swap goes."""

    tried: Search | None
    settings: Mapping[str, int | float | str]


class Joint(Protocol):
    """Words that were taken out together."""

    words: Sequence[ValuedWord]
    effect: float
    alone: float
    of_query: bool


def figure(value: float, sign: str = "", beside: Sequence[float] = ()) -> str:
    """Return a change of the score, with a real minus sign (see NOTE [Digits] in scores.py).

    Args:
        beside: other changes that stand next to it.

    >>> figure(-4.04), figure(0.5, "+"), figure(0.00031), figure(0.031, beside=[0.25])
    ('−4.04', '+0.50', '0.00031', '0.03')
    """
    return number(value, f"{sign}z.{digits_for([value, *beside])}f")


def ordinal(place: int) -> str:
    """Return a place in a ranking in words.

    >>> [ordinal(place) for place in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def count_of(count: int, thing: str, things: str | None = None) -> str:
    """Return a number of things: `1 query`, `2 queries`.

    >>> count_of(1, "query", "queries"), count_of(1200, "word")
    ('1 query', '1,200 words')
    """
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def joint_lines(made: Explained) -> list[str]:
    """Return a line for each set of words that brings more or less together than alone, if any word matters."""
    if made.check is not None and made.check.verdict == NO_EFFECT:
        return []
    return [
        _joint_line(joint, (made.query if joint.of_query else made.document).words) for joint in made.together[:JOINTS]
    ]


def which_of(word: ValuedWord, words: Sequence[ValuedWord]) -> str:
    """Return which of the same words of a text a word is: `2nd`; empty where it occurs once."""
    same = [one.start for one in words if one.text.casefold() == word.text.casefold()]
    return ordinal(same.index(word.start) + 1) if len(same) > 1 else ""


def name_of(word: ValuedWord, words: Sequence[ValuedWord]) -> str:
    """Return a word as a list of words names it: `2nd “items”`, or `items` where it occurs once."""
    nth = which_of(word, words)
    return f"{nth} “{word.text}”" if nth else word.text


def no_swap_line(found: Compared) -> str:
    """Return that no set of words makes two documents change places, what was tried, and what tries more."""
    tried, said = found.tried, "No set of words that was tried makes the two change places"
    if tried is None:
        return "No words that make the two change places were looked for."
    most = min(int(found.settings["most"]), tried.words - 1)
    if most < 1:
        return f"{said}: the document has {count_of(tried.words, 'word')}, and keeps one."
    wider = "--budget" if tried.spent else "--beam" if most == tried.words - 1 else "--most or --beam"
    sets = f"{count_of(tried.sets, 'set')} of up to {most} of its {count_of(tried.words, 'word')}"
    return f"{said}: {sets} were tried, and a larger {wider} tries more."


def _joint_line(joint: Joint, text: Sequence[ValuedWord]) -> str:
    together, alone = (figure(value, "+", (joint.effect, joint.alone)) for value in (joint.effect, joint.alone))
    place = "in the query, " if joint.of_query else ""
    return f"{place}{_joint_words(joint.words, text)}: {together} together, {alone} one by one"


def _joint_words(words: Sequence[ValuedWord], text: Sequence[ValuedWord]) -> str:
    """Return words that were taken out together: neighbours as they stand in the text, others with `and` between them.

    Which of the same words is meant is said of each word that stands alone, and of a phrase's first.
    """
    places = {word.start: place for place, word in enumerate(text)}
    phrases: list[list[ValuedWord]] = []
    for word in words:
        if phrases and places[word.start] == places[phrases[-1][-1].start] + 1:
            phrases[-1].append(word)
        else:
            phrases.append([word])
    said = []
    for phrase in phrases:
        nth = which_of(phrase[0], text)
        said.append(f"“{_as_in_text(phrase)}”" + (f" ({nth})" if nth else ""))
    return " and ".join(said) + (", apart in the text" if len(said) > 1 else "")


def _as_in_text(phrase: Sequence[ValuedWord]) -> str:
    gaps = (first.start + len(first.text) < second.start for first, second in zip(phrase, phrase[1:]))
    return phrase[0].text + "".join(" " * gap + word.text for gap, word in zip(gaps, phrase[1:]))


def effect_sentence(ranked: Scored, ranking: RankedDocuments) -> str | None:
    """Return what happens without the word that matters most, of those measured; None where none matters.

    The word is the one that moves the document furthest in the ranking; where none moves it, the one that moves its
    score furthest.
    """
    made = ranked.attribution
    if made is None or ranked.window is not None:  # without a word another window may be the best
        return None
    least = made.check.threshold if made.check is not None else 0.0
    words = [
        word
        for word in made.document.words
        if word.effect is not None and not word.is_mark and abs(word.effect) > least
    ]
    if not words:
        return None
    places = {id(word): _place_without(word, ranked, ranking) for word in words}
    word = max(words, key=lambda one: (abs(places[id(one)] - ranked.rank), abs(one.effect)))
    place = places[id(word)]
    way = "falls" if word.effect > 0 else "rises"
    written = write_scores([ranked.score, ranked.score - word.effect], activation_of(ranking.documents))
    scores = f"from {written.texts[0]} to {written.texts[1]}"
    nth = which_of(word, made.document.words)
    without = f"without the {nth} “{word.text}”" if nth else f"without “{word.text}”"
    if place == ranked.rank:
        return f"{without} its {written.quantity} {way} {scores}"
    last = place == len(ranking.documents)  # of a ranking that was cut at the best, it may fall further
    to = f"{ordinal(place)}, the last shown" if last else ordinal(place)
    return f"{without} this document {way} from {ordinal(ranked.rank)} to {to} ({written.quantity} {scores})"


def _place_without(word: ValuedWord, ranked: Scored, ranking: RankedDocuments) -> int:
    """Return the document's place without a word: the others keep their scores."""
    after = ranked.score - word.effect
    return 1 + sum(other.score > after for other in ranking.documents if other.index != ranked.index)


QUERY_NAME = "the query"  # in `OtherLanguage.text`
NAMED = 3  # documents that a line names


def closeness_line(ranking: RankedDocuments, typo: TypoEffect | None) -> str | None:
    """Return how many typos in the query put another of the close documents first; None if none is close."""
    if typo is None or typo.close < 2:
        return None
    apart = ranking.documents[0].score - ranking.documents[typo.close - 1].score
    unit = unit_of(activation_of(ranking.documents))
    apart, moved = (figure(value, beside=(apart, typo.effect)) for value in (apart, typo.effect))
    tried, other = _share_of(typo.overturned, typo.tried), "the other" if typo.close == 2 else "another of them"
    if not typo.overturned:
        return (
            f"the top {typo.close} documents' {unit}s differ by {apart}, less than a typo in the query changes the "
            f"best one's ({moved}); but {tried} puts {other} first"
        )
    return (
        f"the top {typo.close} documents are close: their {unit}s differ by {apart}, and a typo in the query changes "
        f"the best one's by {moved}; {tried} {'puts' if typo.overturned == 1 else 'put'} {other} first"
    )


def _share_of(count: int, tries: int) -> str:
    """Return in how many of some tries, in words.

    >>> _share_of(0, 3), _share_of(2, 3), _share_of(3, 3)
    ('none of 3 typos tried', '2 of 3 typos tried', 'all 3 typos tried')
    """
    typos = count_of(tries, "typo")
    return (
        f"none of {typos} tried"
        if not count
        else f"all {typos} tried"
        if count == tries
        else f"{count} of {typos} tried"
    )


def candidates_line(retrieval: Retrieval) -> str:
    """Return how the documents that were reranked were chosen.

    >>> candidates_line(Retrieval("BM25", 100, 1234))
    'the 100 best of 1,234 documents by BM25; the others were not reranked'
    """
    best = "best" if retrieval.candidates == 1 else f"{retrieval.candidates:,} best"
    return f"the {best} of {retrieval.documents:,} documents by {retrieval.retriever}; the others were not reranked"


def language_line(model: str, found: Sequence[TextInOtherLanguage]) -> str | None:
    """Return which texts look to be in a language that a model does not read; None where none does."""
    query = [f"the query looks {one.language}" for one in found if one.text == QUERY_NAME]
    others = [one for one in found if one.text != QUERY_NAME]
    if not query and not others:
        return None
    named = ", ".join(f"{one.text} {one.language}" for one in others[:NAMED]) + (", …" if len(others) > NAMED else "")
    looks = "document looks" if len(others) == 1 else "documents look"
    documents = [f"{len(others)} {looks} to be in another language ({named})"] if others else []
    return f"{' and '.join(query + documents)}; {model} reads English only"


def spelling_line(found: Sequence[Sequence[Misspelling]]) -> str | None:
    """Return which words of a query are read as others; None where none is.

    Args:
        found: the `read_as` of each document.

    >>> refund = Misspelling("refnud", 2, 8, "refund")
    >>> spelling_line([[refund]])
    '“refnud” read as “refund”'
    >>> spelling_line([[refund], [refund], []])
    '“refnud” read as “refund” with 2 of 3 documents, the others have it'
    """
    counts = Counter((one.text, one.read_as) for some in found for one in {one.read_as: one for one in some}.values())
    return ", ".join(_spelling(*words, count, len(found)) for words, count in counts.items()) or None


def _spelling(text: str, read_as: str, count: int, documents: int) -> str:
    where = f" with {count} of {documents} documents, the others have it" if count < documents else ""
    return f"“{text}” read as “{read_as}”{where}"


def unanswered_line(ranking: Answering) -> str | None:
    """Return that no document's activated score reaches the model's threshold; None where one does or there is none."""
    if ranking.answered is not False or not ranking.documents:
        return None
    best = max(one.activated for one in ranking.documents)
    return (
        f"perhaps nothing here answers the query: the best document scores {best:.3g}, and documents that answer "
        f"usually score {ranking.threshold:.3g} or more with {ranking.model}; for codes and single words it can be less"
    )


def windows_text(window: WindowRead) -> str:
    """Return which windows of a document were scored, in words: all, or how many of how many, and how chosen."""
    if window.chosen_by is None:
        return f"{window.of:,} windows"
    return f"{window.read:,} windows scored of {window.of:,}, {HOW_CHOSEN[window.chosen_by]}"


HOW_CHOSEN = {"BM25": "chosen by BM25", "evenly spread": "spread evenly"}  # of NOTE [Preselected windows]


def preselection_line(documents: Sequence[tuple[str, WindowRead | None]]) -> str | None:
    """Return of which documents not all windows were scored; None where there is none.

    Args:
        documents: the name and the window of each.
    """
    some = [(name, window) for name, window in documents if window is not None and window.chosen_by is not None]
    if not some:
        return None
    named = "; ".join(f"{name}: {windows_text(window)}" for name, window in some[:NAMED])
    return f"{count_of(len(some), 'long document')} not scored whole ({named}{'; …' if len(some) > NAMED else ''})"


def value_words(made: Explained, word: ValuedWord, scale: float = 1.0) -> str:
    """Return whether a word's value was measured; empty for a method that measures nothing by itself.

    For other methods, what the check measured for it.
    """
    if look_of(made, scale).is_estimated(word):
        return "estimated, not measured"
    if word.effect is None:
        return ""
    return f"measured: {figure(word.effect, '+')}"


def precision_line(ran: Ran | None) -> str | None:
    """Return how far gradients in half precision were from those in float32; None where there were none."""
    if ran is None or ran.compared is None:
        return None
    if ran.deviation is None:
        return f"{ran.dtype}: gradients not compared with float32, for which there was no memory"
    pairs = count_of(ran.compared, "pair")
    return f"{ran.dtype}: gradients within {100 * ran.deviation:.2g} % of float32 on {pairs}"


def execution_line(ran: Ran | None) -> str | None:
    """Return how a model ran; None for backlight's engine on the processor."""
    if ran is None:
        return None
    compiled = ", compiled" if ran.compiled else ""
    return f"{ran.engine} on {ran.device} in {ran.dtype}{compiled}; sequences {ran.sequences}"


def gap_text(gap: float | None) -> str:
    """Return whether values add up to the change of the score that they explain, and how nearly."""
    if gap is None:
        return "not additive"
    return f"additive within {abs(gap):.2g}" if abs(gap) >= 1e-6 else "additive"
