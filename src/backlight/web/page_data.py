"""All that one page shows, and how it is written into the page: one JSON island that the page's script draws from.

NOTE [The island]
A word is `[start, end, value, tokens, error or null, effect or null, estimated]`; its text is cut from the text that it
belongs to. `effect` is what was measured for it, `estimated` is 1 where its value is an estimate beside measured ones.
Values have five significant figures. Of a document of more than `CARRIED` characters the page has an excerpt, from
`from` on of `length`, around what was read; its words' places are in the excerpt, those of `window` in the document.
`<` is written as an escape: no text can end the script element that holds the island.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from backlight.explain.attribution import Attribution, Ranked, Ranking, TextAttribution, Window, Word
from backlight.explain.comparison import Comparison
from backlight.explain.methods.attention_links import AttentionLinks, Look
from backlight.explain.methods.interactions import Interactions
from backlight.explain.methods.registry import METHODS
from backlight.explain.presentation.scales import activation_of, bar_share, largest_value, look_of, ranking_scales
from backlight.explain.presentation.scores import score_line, score_parts, unit_of, write_scores
from backlight.explain.presentation.verdict import details_line, measured_text, verdict_line, verdict_logits
from backlight.explain.presentation.wording import (
    WINDOW_ALONE,
    candidates_line,
    closeness_line,
    effect_sentence,
    execution_line,
    gap_text,
    joint_lines,
    language_line,
    name_of,
    no_swap_line,
    precision_line,
    spelling_line,
    unanswered_line,
    windows_text,
)
from backlight.explain.typos import TypoEffect
from backlight.report.page import json_island

CARRIED = 20_000  # characters of a document that a page has completely
AROUND = 3000  # of a longer one, those before and after what was read
LISTED = 1000  # documents that were not reranked, of which a page has the names


@dataclass(frozen=True)
class PageData:
    """What one page shows: documents for one query, explained by the requested methods.

    Args:
        rankings: the same documents in the same order, each explained by another method.
        matrices: by the document's index, what the words of query and document bring together.
        attention: by the document's index, the attention between the two.
        layers: by the document's index, the score if each layer were the last.
        comparisons: why one document ranks above another.
        typo: what typos in the query do to the ranking (`try_typos`); None if not computed.
        left_out: the files that were not read: their names and the reasons.
    """

    rankings: Sequence[Ranking] = ()
    matrices: Mapping[int, Sequence[Interactions]] = field(default_factory=dict)
    attention: Mapping[int, AttentionLinks] = field(default_factory=dict)
    layers: Mapping[int, Sequence[float]] = field(default_factory=dict)
    comparisons: Sequence[Comparison] = ()
    typo: TypoEffect | None = None
    left_out: Sequence[Mapping[str, str]] = ()

    @property
    def query(self) -> str:
        """The query."""
        return (*self.rankings, *self.comparisons)[0].query


def island(page: PageData, version: str, when: datetime.datetime) -> str:
    """Return a page's data as JSON that may stand inside HTML (see NOTE [The island])."""
    return json_island(_page(page, version, when))


def _page(page: PageData, version: str, when: datetime.datetime) -> dict:
    first = (*page.rankings, *page.comparisons)[0]
    explained = [one.attribution for ranking in page.rankings for one in ranking.documents if one.attribution]
    query = explained[0].query if explained else page.comparisons[0].query_words if page.comparisons else None
    documents = page.rankings[0].documents if page.rankings else ()
    activation = activation_of(documents) if documents else page.comparisons[0].activation
    methods = [METHODS[one.method] for one in page.rankings if any(ranked.attribution for ranked in one.documents)]
    return {
        "version": version,
        "when": when.isoformat(timespec="seconds"),
        "date": f"{when.day} {when:%B %Y, %H:%M}",
        "query": first.query,
        "queryRead": _read(query) if query else [0, len(first.query)],
        "queryTruncation": asdict(query.truncation) if query else None,
        "model": first.model,
        "scoreName": first.score_name,
        "scoreLine": score_line(first.score_name, activation),
        "unit": unit_of(activation),
        "maxTokens": page.rankings[0].max_tokens if page.rankings else None,
        "activation": activation,
        "candidates": _candidates(page),
        "notReranked": [[one.rank, one.name] for ranking in page.rankings[:1] for one in ranking.not_reranked[:LISTED]],
        "closeness": closeness_line(page.rankings[0], page.typo) if page.rankings else None,
        "methods": [{"name": one.name, "title": one.title, "summary": one.summary} for one in methods],
        "scales": {one.method: _scales(one) for one in page.rankings},
        "documents": [_document(page, ranked) for ranked in documents],
        "language": _language(page.rankings[0]) if page.rankings else None,
        "unanswered": unanswered_line(page.rankings[0]) if page.rankings else None,
        "spelling": _spelling(page),
        "leftOut": list(page.left_out),
        "comparisons": [_comparison(one) for one in page.comparisons],
    }


def _candidates(page: PageData) -> dict | None:
    """Return how the documents of a page were chosen from a longer list; None where they were not."""
    if not page.rankings or page.rankings[0].retrieval is None:
        return None
    ranking = page.rankings[0]
    return {
        "line": candidates_line(ranking.retrieval),
        "retriever": ranking.retrieval.retriever,
        "others": len(ranking.not_reranked),
    }


def _document(page: PageData, ranked: Ranked) -> dict:
    """Return a document with what each method says of it."""
    found = {
        ranking.method: one
        for ranking in page.rankings
        for one in ranking.documents
        if one.index == ranked.index and one.attribution
    }
    made = next((one.attribution for one in found.values()), None)
    read = _read(made.document) if made else [0, len(ranked.text)]
    first, last = excerpt_of(ranked, read)
    activation = activation_of(page.rankings[0].documents)
    layers, links = page.layers.get(ranked.index), page.attention.get(ranked.index)
    return {
        "rank": ranked.rank,
        "name": ranked.name,
        "text": ranked.text[first:last],
        "from": first,
        "length": len(ranked.text),
        "score": _short(ranked.score),
        "activated": _short(ranked.activated),
        "shown": score_parts(ranked.score, ranked.activated, activation),
        "truncation": asdict(ranked.truncation),
        "read": [place - first for place in read] if made else [0, last - first],
        "window": _window(ranked.window),
        "windowAlone": WINDOW_ALONE if ranked.window and ranked.window.effects_of == "window" else None,
        "bar": _short(bar_share(ranked, page.rankings[0])),
        "explanations": {
            name: {
                **_explanation(one.attribution, first),
                "check": verdict_line(one.attribution, activation, one.window),
                "logits": verdict_logits(one.attribution, activation),
                "details": details_line(one.attribution, activation),
                "sentence": effect_sentence(one, page.rankings[0]),
            }
            for name, one in found.items()
        },
        "matrices": [_matrix(matrix, first, last) for matrix in page.matrices.get(ranked.index, ())],
        "attention": _attention(links, first) if links else None,
        "layers": {"after": [_short(score) for score in layers]} if layers else None,
    }


def _window(window: Window | None) -> dict | None:
    """Return which window gave a score, and in words how many there are and were scored."""
    return None if window is None else {**asdict(window), "windows": windows_text(window)}


def _language(ranking: Ranking) -> str | None:
    return language_line(ranking.model, ranking.other_languages)


def _spelling(page: PageData) -> str | None:
    documents = page.rankings[0].documents if page.rankings else ()
    sides = [one.read_as for found in page.comparisons for one in (found.a, found.b)]
    return spelling_line([one.read_as for one in documents] or sides)


def excerpt_of(ranked: Ranked, read: Sequence[int]) -> tuple[int, int]:
    """Return first and last + 1 character of what a page has of a document: all, or the part around what was read."""
    length = len(ranked.text)
    if length <= CARRIED:
        return 0, length
    if read[1] - read[0] == length:  # not explained, or explained by the mean of all windows
        single = ranked.window is not None and ranked.window.number is not None
        read = (ranked.window.first_character, ranked.window.last_character) if single else (0, CARRIED)
        if not single and ranked.attribution is not None:
            return 0, length
    return _around(read, length)


def _around(read: Sequence[int], length: int) -> tuple[int, int]:
    return max(0, read[0] - AROUND), min(length, read[1] + AROUND)


def _account(made: Attribution | Interactions) -> dict:
    named = {name: getattr(made, name) for name in ("method", "meaning", "signed", "baseline", "passes")}
    return {**named, "sum": gap_text(made.gap), "settings": _settings(made)}


def _settings(made: Attribution | Interactions) -> dict:
    """Return the options of a method; how many words were measured is in the check's line."""
    return {name: value for name, value in made.settings.items() if name != "measured"}


def _explanation(made: Attribution, first: int) -> dict:
    return {
        **_account(made),
        "title": METHODS[made.method].title,
        "fallback": made.fallback,
        "verdict": made.check.verdict if made.check else None,
        "precision": precision_line(made.execution),
        "execution": execution_line(made.execution),
        "measured": measured_text(made),
        "together": joint_lines(made),
        "query": _words(made.query, made),
        "document": _moved(_words(made.document, made), first),
        "special": [[token.text, _short(token.value)] for token in made.special],
    }


def _moved(places: Sequence[Sequence], first: int) -> list[list]:
    """Return words, or places, counted from the first character of an excerpt."""
    return [[start - first, end - first, *rest] for start, end, *rest in places]


def _matrix(made: Interactions, first: int, last: int) -> dict:
    read = [made.document[0].start, made.document[-1].end] if made.document else [0, 0]
    return {
        **_account(made),
        "queryText": made.query_text,
        "documentText": made.document_text[first:last],
        "read": [place - first for place in read],
        "query": [_word(word) for word in made.query],
        "document": _moved([_word(word) for word in made.document], first),
        "queryNames": [name_of(word, made.query) for word in made.query],
        "documentNames": [name_of(word, made.document) for word in made.document],
        "values": [[_short(value) for value in row] for row in made.values],
    }


def _comparison(made: Comparison) -> dict:
    sides = {
        letter.lower(): _side(name, score, activated, one, made.activation)
        for (letter, name, score, one), activated in zip(made.sides, (made.activated_a, made.activated_b))
    }
    swap = made.swap
    better = (made.b if swap and swap.side == "b" else made.a).document
    moved = _part_around(better)[0] if swap else 0
    return {
        **sides,
        "method": made.method,
        "title": METHODS[made.method].title if made.method in METHODS else made.method,
        "meaning": made.a.meaning,
        "baseline": made.a.baseline,
        "sum": gap_text(None),
        "settings": _settings(made.a),
        "passes": made.passes,
        "query": _words(made.query_words, made.a),
        "scale": _short(largest_value([made.a.document, made.b.document])),
        "difference": _short(made.difference),
        "identical": made.identical,
        "noSwap": None if swap else no_swap_line(made),
        "swap": swap
        and {
            "side": swap.side,
            "words": [word.start - moved for word in swap.words],
            "names": [name_of(word, better.words) for word in swap.words],
            "after": _after_swap(made),
            "exact": swap.exact,
        },
    }


def _after_swap(made: Comparison) -> str:
    """Return what the better document's score is without the words of the swap."""
    before = made.score_a if made.swap.side == "a" else made.score_b
    written = write_scores([made.swap.score_after, before], made.activation)
    return f"{written.quantity} is then {written.texts[0]} instead of {written.texts[1]}"


def _side(name: str, score: float, activated: float | None, made: Attribution, activation: str | None) -> dict:
    """Return a document of a comparison: of a long one the part around what was read."""
    text = made.document
    first, last = _part_around(text)
    return {
        "name": name,
        "text": text.text[first:last],
        "score": _short(score),
        "shown": score_parts(score, activated, activation),
        "read": [place - first for place in _read(text)],
        "words": _moved(_words(text, made), first),
        "truncation": asdict(text.truncation),
        "window": _window(made.window),
    }


def _part_around(text: TextAttribution) -> tuple[int, int]:
    length = len(text.text)
    return (0, length) if length <= CARRIED else _around(_read(text), length)


def _attention(links: AttentionLinks, first: int) -> dict:
    """Return links as flat lists of small whole numbers: see `linksOf` in attention.js."""
    ways = {"The query looks at the document": links.from_query, "The document looks at the query": links.from_document}
    return {
        "layers": len(links.from_query),
        "heads": len(links.from_query[0]) - 1,
        "kept": links.kept,
        "query": links.query,
        "document": _moved(links.document, first),
        "directions": [
            {"name": name, "links": [[_flat(head) for head in layer] for layer in way]} for name, way in ways.items()
        ],
    }


def _flat(links: Sequence[Look]) -> list[float]:
    most = links[0].share if links else 0.0
    shares = np.array([link.share for link in links]) / (most or 1.0)
    sizes = np.round(255 * shares).astype(int).tolist()
    kept = [(link.query, link.document, size) for link, size in zip(links, sizes) if size]
    return [_short(most), *(number for triple in kept for number in triple)]


def _scales(ranking: Ranking) -> list[float]:
    """Return the |value| of a full shade, of the query's words and of the documents'."""
    return [_short(scale) for scale in ranking_scales(ranking)]


def _words(text: TextAttribution, made: Attribution) -> list[list]:
    look = look_of(made, 1.0)
    return [_word(word, look.is_estimated(word)) for word in text.words]


def _word(word: Word, estimated: bool = False) -> list:
    error, effect = (None if value is None else _short(value) for value in (word.error, word.effect))
    return [word.start, word.end, _short(word.value), word.tokens, error, effect, int(estimated)]


def _read(text: TextAttribution) -> list[int]:
    return [text.truncation.first_character, text.truncation.characters_read]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
