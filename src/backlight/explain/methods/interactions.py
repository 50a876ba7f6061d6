"""Interactions: how each word of the query and each word of the document affect the score together.

Source: Janizek, Sturmfels, Lee, Explaining Explanations: Axiomatic Feature Interactions for Deep Networks, 2020,
arXiv:2002.04138 (integrated Hessians); Grabisch, Roubens, An axiomatic approach to the concept of interaction among
players in cooperative games, 1999 (the interaction of two players, which joint occlusion takes next to all others).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from backlight.errors import InputError, unknown
from backlight.explain.attribution import Truncation, Window, Word, truncation_of
from backlight.explain.checks import check_same_scores, check_values
from backlight.explain.methods.ablation import removal_called, score_groups
from backlight.explain.methods.integrated_hessians import CurvedPath, direction
from backlight.explain.methods.registry import Method
from backlight.explain.notebook import interactions_html
from backlight.explain.parts import Part, part_words, word_parts
from backlight.explain.presentation.tables import Tabular
from backlight.explain.windows import BEST, MAX_WINDOWS, WindowOptions, read_best
from backlight.models.misspellings import Misspelling
from backlight.models.pairs import ADDED, DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Scorer

MAXSIM = "maxsim"  # the one method that is of a kind of models, and no estimate
MOST = 10_000  # passes that a matrix may take unless more are allowed


@dataclass(frozen=True)
class Link:
    """A word of the query, a word of the document, and their interaction."""

    query: Word
    document: Word
    value: float


@dataclass(frozen=True)
class Interactions(Tabular):
    """The interaction of each word of the query with each word of the document, beyond their separate effects.

    Args:
        method: the method's name, a key of `MATRICES`.
        meaning: what the values are, in words or as a formula.
        model: the model's name.
        score: the raw score that is explained.
        query_text, document_text: the texts.
        query: the query's words; the value of each is the sum of its row.
        document: the document's words, as far as the model read it; the value of each is the sum of its column.
        values: in units of the score, (query words, document words).
        signed: whether the sign of a value says that the two words together raise (+) or lower (−) the score.
        baseline: what the inputs were compared with; None for methods that compare with nothing.
        gap: the difference between the sum over all pairs of tokens and the sum that the method guarantees, in units of
            the score; None for methods that guarantee no sum.
        passes: how many times the pair went through the model, forward or backward.
        settings: the options of the method by name.
        truncation: how much of the document was not read.
        window: the window of the document, if it was read in windows; else None.
        read_as: words of the query that were corrected; values are attributed to the words as written.
        activated: the score after the model's activation.
    """

    method: str
    meaning: str
    model: str
    score: float
    query_text: str
    document_text: str
    query: tuple[Word, ...]
    document: tuple[Word, ...]
    values: tuple[tuple[float, ...], ...]
    signed: bool = True
    baseline: str | None = None
    gap: float | None = None
    passes: float = 1
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    truncation: Truncation | None = None
    window: Window | None = None
    read_as: tuple[Misspelling, ...] = ()
    activated: float | None = None

    def strongest(self, count: int | None = None) -> list[Link]:
        """Return the links of the largest value, whatever its sign, largest first; all by default.

        Links of punctuation are left out; `rows` has them.
        """
        links = (link for link in self._links() if not (link.query.is_mark or link.document.is_mark))
        return sorted(links, key=lambda link: -abs(link.value))[:count]

    def strongest_columns(self, most: int) -> tuple[list[int], list[float]]:
        """Return the words' columns with the largest values, in the order of the text, and the largest size in each.

        Punctuation has no column, unless there is nothing else.
        """
        words = [column for column, word in enumerate(self.document) if not word.is_mark]
        words = words or list(range(len(self.document)))
        sizes = [max((abs(row[column]) for row in self.values), default=0.0) for column in words]
        best = sorted(range(len(words)), key=lambda place: -sizes[place])[:most]
        return [words[place] for place in sorted(best)], sizes

    def rows(self) -> list[dict]:
        """Return a row a pair of words: both words, their first characters and the value."""
        return [
            {
                "query": link.query.text,
                "query_start": link.query.start,
                "document": link.document.text,
                "document_start": link.document.start,
                "value": link.value,
            }
            for link in self._links()
        ]

    def _links(self) -> Iterator[Link]:
        for word, row in zip(self.query, self.values):
            yield from (Link(word, other, value) for other, value in zip(self.document, row))

    def __repr__(self) -> str:
        links = ", ".join(f"{link.query.text} × {link.document.text} {link.value:.3g}" for link in self.strongest(3))
        return f"Interactions({self.method} of {self.score:.4g}: {links})"

    def _repr_html_(self) -> str:
        return interactions_html(self)


def joint_occlusion(ranker: Scorer, pair: Pair, *, by: str = "mask", most: int = MOST) -> Interactions:
    """Return the interaction of two words: score − score without i − score without j + score without both.

    Args:
        pair: as `ranker.read` gives it.
        by: how words are removed, a key of `WAYS` (see NOTE [Ways to leave words out]).
        most: the largest number of passes.

    Returns:
        In units of the score. + means that the words need each other, − that one can replace the other. The cost is
        one pass for each word and for each pair of a query word and a document word.

    Raises:
        InputError: `by` is not a key of `WAYS` or not supported by the model, or the words need more passes than
            `most`.
        RuntimeError: all interactions are zero, or a score is not finite.
    """
    query, document = word_parts(pair, QUERY), word_parts(pair, DOCUMENT)
    _check_cost(ranker, pair, "joint-occlusion", (1 + len(query)) * (1 + len(document)), most)
    both = [[one, other] for one in query for other in document]
    removals = [[], *([part] for part in [*query, *document]), *both]
    (scores,) = score_groups(ranker, [removal_called(by)(ranker, pair, removals)])
    all_tokens, without_one, without_other, without_both = np.split(scores, np.cumsum([1, len(query), len(document)]))
    values = all_tokens - without_one[:, None] - without_other + without_both.reshape(len(query), len(document))
    return _interactions(
        ranker,
        pair,
        values,
        method="joint-occlusion",
        meaning="score − score without one − score without the other + score without both",
        score=float(all_tokens[0]),
        baseline=f"the pair without the words, by {by}",
        passes=len(scores),
        settings={"by": by},
    )


def hessian(ranker: Scorer, pair: Pair, *, most: int = MOST) -> Interactions:
    """Return embeddingᵢ · ∂²score/∂embeddingᵢ∂embeddingⱼ · embeddingⱼ, summed over the tokens of two words.

    This is the first-order change of one word's gradient × input if the other word's embedding became zero. It is
    local to this pair and says nothing about larger changes.

    Args:
        pair: as `ranker.read` gives it.
        most: the largest number of passes.

    Raises:
        InputError: the model runs on another engine, or the words need more passes than `most`.
        RuntimeError: the second derivatives are zero everywhere, or not finite.
    """
    _check_curved(ranker, "hessian")
    batch = PairBatch.of([pair])
    query = word_parts(pair, QUERY)
    _check_cost(ranker, pair, "hessian", 3 + 2 * len(query), most)
    embeddings = ranker.embed(batch)
    scores, _, products = ranker.curvatures(batch, (direction(embeddings, part.tokens) for part in query))
    check_same_scores(scores, ranker.score(batch), [pair], ranker.rounding)
    rows = np.stack([(product * embeddings).sum(axis=1) for product in products])  # (query words, tokens)
    return _interactions(
        ranker,
        pair,
        _by_word(rows, word_parts(pair, DOCUMENT)),
        method="hessian",
        meaning="embedding · ∂²score/∂embedding∂embedding · embedding",
        score=float(scores[0]),
        passes=3 + 2 * len(query),
    )


def integrated_hessians(
    ranker: Scorer,
    pair: Pair,
    *,
    baseline: str = "pad",
    steps: int = 16,
    max_steps: int = 128,
    tolerance: float = 0.05,
    floor: float = 1e-4,
    most: int = MOST,
) -> Interactions:
    """Return the interaction of two words on the path from a baseline (integrated Hessians).

    See NOTE [Integrated Hessians] in explain/methods/integrated_hessians.py. Special tokens keep their own embeddings
    in the baseline, so that nothing is attributed to them.

    Args:
        pair: as `ranker.read` gives it.
        baseline: the embeddings that words are compared with: `zero`, `pad`, `mask` or `average`.
        steps: the number of points on the path at first; it is doubled until the gap is small.
        max_steps: the largest number of points. The remaining gap is reported.
        tolerance: the allowed gap, relative to the sum of |values| of all tokens; those of the two texts are often
            large and nearly cancel.
        floor: a gap that is always allowed, in units of the score.
        most: the largest number of passes for the first `steps`.

    Returns:
        In units of the score. Each value counts twice in the sum that `gap` checks, once from each side. The settings
        have the parts of that sum: `within_query`, `between` the texts and `within_document`.

    Raises:
        InputError: the model runs on another engine or has no such baseline, `steps` is below 1, or the words need more
            passes than `most`.
        RuntimeError: all values are zero, one is not finite, or the score is not that of an ordinary call.
    """
    _check_curved(ranker, "integrated-hessians")
    if not 1 <= steps <= max_steps:
        raise InputError(f"steps must be from 1 to max_steps, got {steps} and {max_steps}")
    query = word_parts(pair, QUERY)
    _check_cost(ranker, pair, "integrated-hessians", (3 + 2 * len(query)) * steps, most)
    batch = PairBatch.of([pair])
    embeddings = ranker.embed(batch)
    start = np.where((pair.sides == ADDED)[:, None], embeddings, ranker.baseline(baseline)).astype(embeddings.dtype)
    score, again, least = (float(ranker.score(batch, place)[0]) for place in (None, embeddings, start))
    check_same_scores(np.array([again]), np.array([score]), [pair], ranker.rounding)
    path = CurvedPath(ranker, pair, start, embeddings - start)
    steps, gap, passed = _points_needed(path, score - least, steps, max_steps, tolerance, floor)
    rows, alone = path.integrated(steps, [part.tokens for part in query])  # (query words, tokens)
    values = _by_word(rows, word_parts(pair, DOCUMENT))
    query_tokens = pair.of_side(QUERY)
    within, between = float(rows[:, query_tokens].sum() + alone[query_tokens].sum()), 2 * float(values.sum())
    sums = {"within_query": within, "between": between, "within_document": score - least + gap - within - between}
    return _interactions(
        ranker,
        pair,
        values,
        method="integrated-hessians",
        meaning="(embedding − baseline) · mean ∂²score/∂embedding∂embedding on the way · (embedding − baseline)",
        score=score,
        baseline=f"{baseline} in place of each word's embedding",
        gap=gap,
        passes=3 + passed + (3 + 2 * len(query)) * steps,
        settings={"steps": steps, "tolerance": tolerance, "baseline_score": least, **sums},
    )


def maxsim(ranker: Scorer, pair: Pair) -> Interactions:
    """Return the document word that each query word was matched with, and its contribution to the score.

        score = Σ over the query's tokens of max over the document's tokens of similarity

    Args:
        pair: as `ranker.read` gives it.

    Returns:
        In units of the score. The contribution of the query's special tokens, and of words that match the document's
        special tokens, is in the settings as `special_tokens`; with it the values sum to the score, up to the `gap`.

    Raises:
        InputError: the model is not a late-interaction model.
        RuntimeError: no word was matched with a word.
    """
    if not hasattr(ranker, "token_matches"):
        raise InputError(f"maxsim needs a model of late interaction, and {ranker.name} is none: use joint-occlusion")
    score, matches = ranker.token_matches(pair)
    query, document = word_parts(pair, QUERY), word_parts(pair, DOCUMENT)
    rows = {token: row for row, part in enumerate(query) for token in part.tokens}
    columns = {token: column for column, part in enumerate(document) for token in part.tokens}
    values, special = np.zeros((len(query), len(document))), 0.0
    for match in matches:
        if match.query in rows and match.document in columns:
            values[rows[match.query], columns[match.document]] += match.value
        else:
            special += match.value
    return _interactions(
        ranker,
        pair,
        values,
        method=MAXSIM,
        meaning="similarity of the word's tokens to those of the document that each is most similar to",
        score=score,
        gap=float(values.sum() + special - score),
        passes=1,
        settings={"special_tokens": special},
    )


MATRICES: dict[str, Method] = {
    method.name: method
    for method in (
        Method("joint-occlusion", joint_occlusion, "joint occlusion", "what two words bring only together", True),
        Method(
            "integrated-hessians",
            integrated_hessians,
            "integrated Hessians",
            "the same, shared out along a way from a baseline",
            True,
            True,
        ),
        Method(
            "hessian", hessian, "second derivatives", "how a word's gradient changes with the other word", True, True
        ),
        Method(MAXSIM, maxsim, "MaxSim", "which words late interaction matched, and what that brings", True),
    )
}
ESTIMATES = tuple(name for name in MATRICES if name != MAXSIM)


def matrix(
    ranker: Scorer,
    query: str,
    document: str,
    *,
    method: str = "joint-occlusion",
    windows: str | None = BEST,
    stride: int | None = None,
    max_windows: int = MAX_WINDOWS,
    **options,
) -> Interactions:
    """Return the interactions of the words of query and document.

    Args:
        method: a name of `MATRICES`.
        windows: how a document longer than the model's limit is read: its "best" window, or truncated (None).
        stride, max_windows: of the windows (see `WindowOptions` in explain/windows.py).
        options: of the method.

    Raises:
        InputError: there is no such method, the windows are "mean", a text has nothing that the model reads, or an
            option is invalid.
        RuntimeError: see the method.
    """
    if method not in MATRICES:
        raise unknown("method", method, MATRICES)
    reading = WindowOptions(windows, stride, max_windows)
    (read,) = read_best(ranker, [(query, document)], ["the document"], reading)
    found = MATRICES[method].explain(ranker, read.pair, **options)
    activated = float(ranker.activate(np.array([found.score]))[0])
    return replace(found, window=read.window, passes=found.passes + read.passes, activated=activated)


def _points_needed(
    path: CurvedPath, change: float, steps: int, max_steps: int, tolerance: float, floor: float
) -> tuple[int, float, int]:
    """Return how many points make the gap small, or may be at most; the gap with them; the passes that it took."""
    passed = 0
    while True:
        (all_tokens,), alone = path.integrated(steps, [range(len(path.pair))])
        shares = all_tokens + alone  # (tokens,)
        gap = float(shares.sum()) - change
        passed += 5 * steps
        if 2 * steps > max_steps or abs(gap) <= max(floor, tolerance * np.abs(shares).sum()):
            return steps, gap, passed
        steps *= 2


def _by_word(rows: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Sum values of tokens over words; (sources, tokens) -> (sources, words)."""
    return np.stack([rows[:, list(part.tokens)].sum(axis=1) for part in parts], axis=1)


def _check_cost(ranker: Scorer, pair: Pair, method: str, needed: int, most: int) -> None:
    """Raise, before any work, if a matrix takes more passes than it may, with how long they would take."""
    if needed <= most:
        return
    began = time.perf_counter()
    ranker.score(PairBatch.of([pair]))
    minutes = needed * (time.perf_counter() - began) / 60
    words = " and ".join(f"{len(word_parts(pair, side))} words of the {name}" for side, name in SIDES.items())
    raise InputError(
        f"{method} may take {most:,} passes, and {words} need {needed:,} of {len(pair)} tokens, about {minutes:,.0f} "
        f"minutes or more: shorten a text, or allow it with most={needed} (--option most={needed})"
    )


SIDES = {QUERY: "query", DOCUMENT: "document"}


def _check_curved(ranker: Scorer, method: str) -> None:
    if not hasattr(ranker, "curvatures"):
        raise InputError(
            f"{method} needs second derivatives, which only models on backlight's own engine give, and "
            f"{ranker.name} runs on another: use joint-occlusion"
        )


def _interactions(ranker: Scorer, pair: Pair, values: np.ndarray, **fields) -> Interactions:
    """Return a matrix with the words that it belongs to, after checking its values."""
    check_values(values, pair.name, "what two words bring together to the score")
    return Interactions(
        model=ranker.name,
        query_text=pair.query,
        document_text=pair.document,
        query=part_words(pair, word_parts(pair, QUERY), values.sum(axis=1)),
        document=part_words(pair, word_parts(pair, DOCUMENT), values.sum(axis=0)),
        values=tuple(tuple(row) for row in values.tolist()),
        truncation=truncation_of(pair, DOCUMENT),
        read_as=pair.read_as,
        **fields,
    )
