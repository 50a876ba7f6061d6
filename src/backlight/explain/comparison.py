"""Why one document ranks above another, and how a score changes when a document is edited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, TextAttribution, Truncation, Window, truncation_of
from backlight.explain.counterfactuals import Search, Swap, Tried
from backlight.explain.edits import Edit, label_of
from backlight.explain.methods.registry import METHODS, method_called
from backlight.explain.notebook import comparison_html
from backlight.explain.presentation.scales import activation_of_scores
from backlight.explain.presentation.tables import Tabular, word_rows
from backlight.explain.windows import BEST, MAX_WINDOWS, WindowOptions, read_best, read_named, score_documents
from backlight.models.misspellings import Misspelling
from backlight.models.pairs import DOCUMENT
from backlight.models.scorer import Scorer, no_progress

MEASURED = "leave-one-out"
ALL_WORDS = 1_000_000  # more than any model reads


@dataclass(frozen=True)
class Comparison(Tabular):
    """Why document A ranks above document B for a query, or B above A.

    Args:
        query: the query.
        model: the model's name.
        score_name: the kind of score, such as "logit".
        method: the explanation method.
        name_a, name_b: the names of the documents.
        a, b: the values of the words of each pair: their contribution to score(A) − score(B), in units of the score.
            + raises A or lowers B, − the opposite. Each has its document's raw score, and the explained `window` if
            the document was read in windows.
        query_words: the contribution of the query's words to the difference, from both pairs together.
        score_a, score_b: the raw scores.
        difference: score(A) − score(B).
        swap: the words that the better document, or its explained window, must lose to rank below the other; None if
            the search found no such set, or was not requested.
        tried: the extent of the search; None if there was no search.
        passes: how many times a pair went through the model, forward or backward.
        activated_a, activated_b: the scores after the model's activation.
        settings: the options of the search by name.
        identical: whether A and B are the same text, so that there is nothing to compare.
    """

    query: str
    model: str
    score_name: str
    method: str
    name_a: str
    name_b: str
    a: Attribution
    b: Attribution
    query_words: TextAttribution
    score_a: float
    score_b: float
    difference: float
    swap: Swap | None
    passes: float
    activated_a: float | None = None
    activated_b: float | None = None
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    identical: bool = False
    tried: Tried | None = None

    @property
    def sides(self) -> tuple[tuple[str, str, float, Attribution], ...]:
        """Letter, name, raw score and explanation of each document."""
        return ("A", self.name_a, self.score_a, self.a), ("B", self.name_b, self.score_b, self.b)

    @property
    def activation(self) -> str | None:
        """What the activated scores are (see `activation_of_scores`)."""
        return activation_of_scores([(self.score_a, self.activated_a), (self.score_b, self.activated_b)])

    def rows(self) -> list[dict]:
        """Return a row a word of the query and of both documents: what it contributes to the difference."""
        return word_rows({"query": self.query_words.words, "a": self.a.document.words, "b": self.b.document.words})

    def __repr__(self) -> str:
        scores = f"{self.name_a} {self.score_a:.4g} − {self.name_b} {self.score_b:.4g} = {self.difference:.4g}"
        return f"Comparison({scores} by {self.method})"

    def _repr_html_(self) -> str:
        return comparison_html(self)


@dataclass(frozen=True)
class Version:
    """A document at one step of its edits.

    Args:
        edit: the edit of the previous version; empty for the original document.
        document: the text.
        score: its raw score.
        activated: the score after the model's activation.
        rank: its rank among the candidates and itself, 1 for the best; None if no candidates were given.
        truncation: how much of the text, or of its best window, was not read.
        window: the window that gave the score, if the text was read in windows.
        read_as: words of the query that were corrected for this text.
    """

    edit: str
    document: str
    score: float
    activated: float
    rank: int | None
    truncation: Truncation
    window: Window | None = None
    read_as: tuple[Misspelling, ...] = ()


@dataclass(frozen=True)
class WhatIf:
    """How a document's score changes with edits, made one after another.

    Args:
        query: the query.
        model: the model's name.
        score_name: the kind of score, such as "logit".
        versions: the original document, then the document after each edit.
        candidates: the number of other documents in the ranking.
    """

    query: str
    model: str
    score_name: str
    versions: tuple[Version, ...]
    candidates: int = 0

    @property
    def before(self) -> Version:
        """The document as it was given."""
        return self.versions[0]

    @property
    def after(self) -> Version:
        """The document after all edits."""
        return self.versions[-1]

    @property
    def change(self) -> float:
        """What all edits together bring to the raw score."""
        return self.after.score - self.before.score


def compare(
    ranker: Scorer,
    query: str,
    a: str,
    b: str,
    *,
    method: str = MEASURED,
    names: tuple[str, str] = ("A", "B"),
    by: str = "drop",
    most: int = 8,
    beam: int = 3,
    budget: int = 2000,
    windows: str | None = BEST,
    stride: int | None = None,
    max_windows: int = MAX_WINDOWS,
    **options,
) -> Comparison:
    """Explain why document A ranks above document B, or B above A.

    The difference of two scores is linear in them: a word's contribution to score(A) − score(B) is its contribution
    to score(A) minus that to score(B). So each pair is explained separately, and the values of B change their sign;
    a word of the query is in both pairs.

    Args:
        method: a name of `METHODS` with signed values. The default, leave-one-out, measures all words.
        names: the names of the documents.
        by: how the search for a swap removes words, a key of `WAYS` (see NOTE [Ways to leave words out]). By
            default words are deleted, so that the score after a swap is that of the changed text.
        most: the largest number of words in a swap; with 0 there is no search.
        beam: how many sets of words of each size grow in the search (see NOTE [The search]).
        budget: how many sets of words the search may score.
        windows: how documents longer than the model's limit are read: by their "best" window, whose words are compared
            and searched, or truncated (None).
        stride, max_windows: of the windows (see `WindowOptions` in explain/windows.py).
        options: of the method.

    Raises:
        InputError: the method is unsigned, the windows are "mean", or a text has nothing that the model reads.
        RuntimeError: a score cannot be explained (see the method).
    """
    _check_signed(method)
    read = read_best(ranker, [(query, a), (query, b)], names, WindowOptions(windows, stride, max_windows))
    pairs = [one.pair for one in read]
    if method == MEASURED and "words" not in options:
        options["words"] = ALL_WORDS  # both texts can be compared word by word only where none is estimated
    made = METHODS[method].explain(ranker, pairs, **options)
    first, second = (replace(one, window=of.window) for one, of in zip(made, read, strict=True))
    score_a, score_b = (float(one.score) for one in (first, second))
    swap, tried = None, None
    if a != b and score_a != score_b and most > 0:
        side = "a" if score_a > score_b else "b"
        search = Search(ranker, pairs["ab".index(side)], by, budget)
        swap = search.swap(max(score_a, score_b), min(score_a, score_b), side, most=most, beam=beam)
        tried = search.tried
    activated = ranker.activate(np.array([score_a, score_b]))
    second = _negative(second)
    return Comparison(
        query=query,
        model=ranker.name,
        score_name=ranker.score_name,
        method=method,
        name_a=names[0],
        name_b=names[1],
        a=first,
        b=second,
        query_words=_together(first.query, second.query),
        score_a=score_a,
        score_b=score_b,
        difference=score_a - score_b,
        swap=swap,
        passes=first.passes + second.passes + (tried.sets if tried else 0) + sum(one.passes for one in read),
        activated_a=float(activated[0]),
        activated_b=float(activated[1]),
        settings={"by": by, "most": most, "beam": beam, "budget": budget},
        identical=a == b,
        tried=tried,
    )


def what_if(
    ranker: Scorer,
    query: str,
    document: str,
    edits: Sequence[Edit],
    *,
    candidates: Sequence[str] = (),
    windows: str | None = BEST,
    stride: int | None = None,
    max_windows: int = MAX_WINDOWS,
) -> WhatIf:
    """Return a document's score, and its score after each of some edits, applied one after another.

    Args:
        edits: `Remove`, `Replace`, `Cut`, `Add` and `Rewrite` of explain/edits.py.
        candidates: other documents for the query; if given, each version has a rank.
        windows, stride, max_windows: how texts longer than the model's limit are read (see `WindowOptions` in
            explain/windows.py), for each version.

    Raises:
        InputError: an edit cannot be applied to the text, or leaves nothing that the model reads.
    """
    labels, texts = [""], [document]
    for edit in edits:
        labels.append(label_of(edit, texts[-1]))
        texts.append(edit.apply(texts[-1]))
    names = ["the document", *(f"the document {edit}" for edit in labels[1:])]
    others = [f"candidate {number}" for number in range(1, len(candidates) + 1)]
    reading = WindowOptions(windows, stride, max_windows)
    read = read_named(ranker, [(query, text) for text in [*texts, *candidates]], [*names, *others], reading)
    scored = score_documents(ranker, read, reading, no_progress)
    scores = np.array([one.score for one in scored])
    scores, rivals = scores[: len(texts)], scores[len(texts) :]
    versions = tuple(
        Version(
            edit=edit,
            document=text,
            score=float(score),
            activated=float(activated),
            rank=1 + int((rivals > score).sum()) if len(rivals) else None,
            truncation=truncation_of(one.best_pair, DOCUMENT),
            window=one.window(),
            read_as=one.best_pair.read_as,
        )
        for edit, text, score, activated, one in zip(labels, texts, scores, ranker.activate(scores), scored)
    )
    return WhatIf(query, ranker.name, ranker.score_name, versions, len(candidates))


def _check_signed(method: str) -> None:
    if not method_called(method).signed:
        signed = ", ".join(name for name, other in METHODS.items() if other.signed)
        raise InputError(
            f"method must give signed values to say who pushes whom up, and {method} does not: {signed} do"
        )


def _negative(found: Attribution) -> Attribution:
    """Return what a pair's words bring to the negative of its score; the score itself stays as it is."""
    return replace(
        found,
        query=_negated(found.query),
        document=_negated(found.document),
        special=tuple(replace(token, value=-token.value) for token in found.special),
        gap=None if found.gap is None else -found.gap,
    )


def _negated(text: TextAttribution) -> TextAttribution:
    words = (replace(one, value=-one.value, effect=None if one.effect is None else -one.effect) for one in text.words)
    tokens = (replace(one, value=-one.value) for one in text.tokens)
    return replace(text, words=tuple(words), tokens=tuple(tokens))


def _together(first: TextAttribution, second: TextAttribution) -> TextAttribution:
    """Return the query with the values of two pairs added, as far as the pair that read more of it."""
    longer, shorter = (second, first) if len(second.words) > len(first.words) else (first, second)
    return replace(longer, words=_added(longer.words, shorter.words), tokens=_added(longer.tokens, shorter.tokens))


def _added(longer: tuple, shorter: tuple) -> tuple:
    """Return words (or tokens) with the values of those at the same places added, and errors as of independent ones."""
    others = {(other.start, other.end): other for other in shorter}
    found = []
    for one in longer:
        other = others.get((one.start, one.end))
        if other is not None:
            one = replace(one, value=one.value + other.value)
            if getattr(one, "error", None) is not None:
                one = replace(one, error=float(np.hypot(one.error, other.error)))
            if getattr(one, "effect", None) is not None:
                one = replace(one, effect=None if other.effect is None else one.effect + other.effect)
        found.append(one)
    return tuple(found)
