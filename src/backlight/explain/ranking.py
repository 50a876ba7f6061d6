"""Rank documents for a query, and explain the best of them.

NOTE [Windows]
A document that is longer than the model reads is read in windows that overlap. `best`, the default, ranks it by its
best window and explains that one. `mean` ranks it by the mean of all; the explanation of a mean is the mean of the
explanations, and a word that several windows read gets a share of each. With None it is cut at its end. Of more than
`FEW_WINDOWS` windows only the best is read again without a word, and `Window.effects_of` says so. Windows are
made as they are scored (see NOTE [Long texts] in models/tokens.py), and of those that do not count a score is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, NotReranked, Ranked, Ranking, Window, Word, truncation_of
from backlight.explain.checks import check_readable, check_same_scores
from backlight.explain.methods.ablation import FEW_WINDOWS
from backlight.explain.methods.registry import DEFAULT, Method, method_called
from backlight.explain.verification import ExplainedDocument, check_explanations
from backlight.explain.words import each_word
from backlight.models.pairs import DOCUMENT, Pair, PairBatch
from backlight.models.retrieval.index import Index, Retrieval, build_index, candidate_count
from backlight.models.scorer import Progress, Scorer, Texts, no_progress
from backlight.models.tokens import PIECE, Windows

BEST, MEAN = WINDOWS = ("best", "mean")
STEPS = 1024  # of a document in windows, for progress: a power of two, so that parts add up to 1 exactly


def check_windows(how: str | None) -> None:
    """Raise unless long documents can be read so."""
    if how not in (None, *WINDOWS):
        raise InputError(f"windows must be one of {', '.join(WINDOWS)}, or None, got {how}")


@dataclass(frozen=True, eq=False)
class Scored:
    """A document as it was scored: its one pair, or a pair for each of its windows."""

    pairs: Sequence[Pair]
    scores: np.ndarray  # (pairs,)
    windows: str | None  # None, or one of WINDOWS

    @property
    def best(self) -> int:
        """The window of the highest score."""
        return int(self.scores.argmax())

    @property
    def score(self) -> float:
        """The raw score that the document is ranked by."""
        return float(self.scores.mean() if self.windows == "mean" else self.scores[self.best])

    @property
    def explained(self) -> list[int]:
        """Which windows the score is made of."""
        return list(range(len(self.pairs))) if self.windows == "mean" else [self.best]

    def window(self) -> Window | None:
        """Return which window the score belongs to; None where the document was not read in windows."""
        if self.windows is None or len(self.pairs) == 1:
            return None
        if self.windows == "mean":
            return Window("mean", None, len(self.pairs), 0, len(self.pairs[0].document))
        effects_of = "document" if len(self.pairs) <= FEW_WINDOWS else "window"
        place = self.pairs[self.best].characters_read(DOCUMENT)
        return Window("best", self.best + 1, len(self.pairs), *place, effects_of)


def rank_and_explain(
    ranker: Scorer,
    query: str,
    documents: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    method: str = DEFAULT,
    top: int | None = None,
    windows: str | None = BEST,
    stride: int | None = None,
    check: bool = True,
    progress: Progress = no_progress,
    **options,
) -> Ranking:
    """Rank documents for a query and explain the best `top` of them, or all.

    Other arguments and errors as `Reranker.rank`, whose `advance` is called `progress` here (see NOTE [Windows]).

    Raises:
        RuntimeError: a score has no gradient (see NOTE [The leaf]).
    """
    if not documents:
        raise InputError("there must be a document at least, got none")
    if top is not None and top < 0:
        raise InputError(f"top must be 0 or more, got {top}")
    chosen_method = method_called(method)
    names = names_of(documents) if names is None else names
    read = _read(ranker, query, documents, names, windows, stride)
    if max(map(len, read)) == 1 and (top is None or top >= len(documents)):
        scored, made = _explained_at_once(ranker, chosen_method, [pair for (pair,) in read], progress, options)
    else:
        scored, made = _scored(ranker, read, windows, progress), None
    scores = np.array([one.score for one in scored], np.float32)
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = order[:top]
    if made is None:
        explained = _explained(ranker, chosen_method, {i: scored[i] for i in chosen}, progress, options)
    else:
        explained = dict(enumerate(made))
    if check and explained:
        to_check = [
            ExplainedDocument(tuple(scored[i].pairs[part] for part in scored[i].explained), explained[i])
            for i in chosen
        ]
        explained = dict(zip(chosen, check_explanations(ranker, to_check, float(np.ptp(scores)))))
    activated = ranker.activate(scores)
    return Ranking(
        query=query,
        model=ranker.name,
        score_name=ranker.score_name,
        method=method,
        max_tokens=ranker.max_tokens,
        documents=tuple(
            Ranked(
                rank=rank,
                name=names[i],
                index=i,
                text=documents[i],
                score=float(scores[i]),
                activated=float(activated[i]),
                truncation=truncation_of(scored[i].pairs[scored[i].best], DOCUMENT),
                window=scored[i].window(),
                attribution=explained.get(i),
            )
            for rank, i in enumerate(order, 1)
        ),
    )


def rank_candidates(
    ranker: Scorer,
    query: str,
    documents: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    candidates: int | None = None,
    retriever: str | Path | Index,
    **options,
) -> Ranking:
    """Rank the candidates of a long list as `rank_and_explain` does, the rest below in the retriever's order.

    Other arguments and errors as `Reranker.rank`.

    Raises:
        InputError: the index is of other documents.
    """
    if isinstance(retriever, Index) and list(retriever.documents) != list(documents):
        raise InputError("the retriever must be an index of the documents that are ranked, got one of others")
    count = candidate_count(len(documents), candidates, retriever)
    if count == len(documents):
        return rank_and_explain(ranker, query, documents, names, **options)
    names = names_of(documents) if names is None else names
    index = retriever if isinstance(retriever, Index) else build_index(documents, retriever)
    order = index.order(query)
    chosen = sorted(order[:count])  # as they were given, so that equal scores keep that order
    ranking = rank_and_explain(ranker, query, [documents[i] for i in chosen], [names[i] for i in chosen], **options)
    return replace(
        ranking,
        documents=tuple(replace(one, index=chosen[one.index]) for one in ranking.documents),
        retrieval=Retrieval(index.name, count, len(documents)),
        not_reranked=tuple(
            NotReranked(rank, names[i], i, documents[i]) for rank, i in enumerate(order[count:], count + 1)
        ),
    )


def names_of(documents: Sequence[str]) -> list[str]:
    """Return what documents without names are called: their numbers."""
    return [f"document {number}" for number in range(1, len(documents) + 1)]


def explain_document(
    ranker: Scorer,
    query: str,
    document: str,
    *,
    method: str = DEFAULT,
    windows: str | None = BEST,
    stride: int | None = None,
    check: bool = True,
    **options,
) -> Attribution:
    """Return the explanation of one pair; arguments and errors as `Reranker.explain`."""
    chosen = method_called(method)
    (pairs,) = _read(ranker, query, [document], ["the document"], windows, stride)
    if len(pairs) > 1:
        (scored,) = _scored(ranker, [pairs], windows, no_progress)
        made = _explained(ranker, chosen, {0: scored}, no_progress, options)[0]
        pairs = [scored.pairs[part] for part in scored.explained]
    else:
        (made,) = chosen.explain(ranker, pairs, **options)
    return check_explanations(ranker, [ExplainedDocument(tuple(pairs), made)])[0] if check else made


def scores_in_windows(
    ranker: Scorer,
    pairs: Sequence[Texts],
    windows: str | None = BEST,
    stride: int | None = None,
    at_once: int | None = None,
) -> np.ndarray:
    """Return the raw score of each pair of texts, long documents read in windows (see NOTE [Windows]); (pairs,).

    Args:
        at_once: how many pairs, or windows, run at once; by default as many as are fastest.
    """
    read = read_in_windows(ranker, pairs, windows, stride)
    if at_once is None:
        scored = _scored(ranker, read, windows, no_progress)
    else:
        parts = _chunks(chain.from_iterable(read), at_once)
        scores = [score for part in parts for score in ranker.score(PairBatch.of(part)).tolist()]
        scored = _cut_by_document(read, np.array(scores, np.float32), windows)
    return np.array([one.score for one in scored], np.float32)


def read_in_windows(
    ranker: Scorer, pairs: Sequence[Texts], windows: str | None, stride: int | None
) -> list[Sequence[Pair]]:
    """Return what a model reads of pairs of texts: one `Pair` each, or one for each window of a long document."""
    check_windows(windows)
    if windows is None:
        return [[pair] for pair in ranker.read(pairs)]
    short = iter(ranker.read([pair for pair in pairs if len(pair[1]) <= PIECE]))
    found: list[Sequence[Pair]] = []
    for pair in pairs:
        whole = next(short) if len(pair[1]) <= PIECE else None
        found.append(ranker.windows(*pair, stride) if whole is None or whole.left_out[DOCUMENT] else [whole])
    return found


def _chunks(pairs: Iterator[Pair], size: int) -> Iterator[list[Pair]]:
    while some := list(islice(pairs, size)):
        yield some


def _read(
    ranker: Scorer,
    query: str,
    documents: Sequence[str],
    names: Sequence[str],
    windows: str | None,
    stride: int | None,
) -> list[Sequence[Pair]]:
    """Return the pairs of each document: one, or one for each of its windows, with its name."""
    read = read_in_windows(ranker, [(query, document) for document in documents], windows, stride)
    found = [named(pairs, name, windows, stride) for pairs, name in zip(read, names, strict=True)]
    for pairs in found:
        check_readable(pairs[0])
    return found


def named(pairs: Sequence[Pair], name: str, windows: str | None, stride: int | None) -> Sequence[Pair]:
    """Return the pairs of one document with its name, and what is known of its windows."""
    if len(pairs) == 1:
        return [replace(pairs[0], name=name)]
    of = {"windowed": True, "best_of": len(pairs) if windows == BEST else 0, "stride": stride}
    return Windows(lambda number: replace(pairs[number], name=name, **of), len(pairs))


def _scored(ranker: Scorer, read: Sequence[Sequence[Pair]], windows: str | None, progress: Progress) -> list[Scored]:
    """Score the windows of all documents, one after another.

    Args:
        progress: called with the number of documents newly done, of a document in windows with a part of 1.
    """
    ends = np.cumsum([len(pairs) for pairs in read])
    passed, done = 0, 0.0

    def advance(windows_done: int) -> None:
        nonlocal passed, done
        passed += windows_done
        ready = int(np.searchsorted(ends, passed, side="right"))
        begun = passed - (ends[ready - 1] if ready else 0)  # windows of the next document
        part = begun * STEPS // len(read[ready]) / STEPS if begun else 0
        progress(ready + part - done)
        done = ready + part

    return _cut_by_document(read, ranker.scores_of(chain.from_iterable(read), advance), windows)


def _cut_by_document(read: Sequence[Sequence[Pair]], scores: np.ndarray, windows: str | None) -> list[Scored]:
    parts = np.split(scores, np.cumsum([len(pairs) for pairs in read])[:-1])
    return [Scored(pairs, part, windows if len(pairs) > 1 else None) for pairs, part in zip(read, parts)]


def _explained_at_once(
    ranker: Scorer, method: Method, pairs: Sequence[Pair], progress: Progress, options: dict
) -> tuple[list[Scored], list[Attribution]]:
    """Return scores and explanations of pairs that are all explained: the scores come out of the explaining pass."""
    made = method.explain(ranker, pairs, progress=lambda done: progress(2 * done), **options)
    return [Scored((pair,), np.array([one.score], np.float32), None) for pair, one in zip(pairs, made)], made


def _explained(
    ranker: Scorer, method: Method, scored: dict[int, Scored], progress: Progress, options: dict
) -> dict[int, Attribution]:
    pairs = [one.pairs[i] for one in scored.values() for i in one.explained]
    ordinary = np.array([one.scores[i] for one in scored.values() for i in one.explained])
    known = {"scores": ordinary} if method.takes_scores else {}
    each = progress if len(pairs) == len(scored) else no_progress
    found = method.explain(ranker, pairs, progress=each, **known, **options) if pairs else []
    check_same_scores([one.score for one in found], ordinary.tolist(), pairs)
    found = iter([replace(one, score=score) for one, score in zip(found, ordinary.tolist())])
    explained = {}
    for place, one in scored.items():
        explained[place] = mean_of([next(found) for _ in one.explained], one.score)
    if each is no_progress:
        progress(len(explained))
    return explained


def _mean_word(same: Sequence[Word], count: int) -> Word:
    """Return a word of a document that was read in `count` windows, from those that hold it."""
    effects = [word.effect for word in same if word.effect is not None]
    return replace(
        same[0],
        value=sum(word.value for word in same) / count,
        effect=sum(effects) / count if len(effects) == len(same) else None,
    )


def mean_of(parts: Sequence[Attribution], score: float) -> Attribution:
    """Return the explanation of the mean of several windows' scores from the windows' explanations.

    Args:
        score: the mean of the windows' scores.
    """
    if len(parts) == 1:
        return parts[0]
    count, words = len(parts), {}
    for part in parts:
        for word in part.document.words:
            words.setdefault(word.start, []).append(word)
    first = parts[0]
    text, found = first.document.text, tuple(_mean_word(words[start], count) for start in sorted(words))
    query = tuple(_mean_word(same, count) for same in zip(*(part.query.words for part in parts)))
    covered = {(word.start, word.end) for word in found}
    reach = [part.document.truncation for part in parts]
    truncation = replace(
        reach[0],
        tokens_left_out=0,
        tokens_read=reach[0].tokens_read + reach[0].tokens_left_out,
        words_left_out=sum(not any(a < end and start < b for a, b in covered) for start, end in each_word(text)),
        first_character=0,
        characters_read=len(text),
    )
    gaps = [part.gap for part in parts]
    return replace(
        first,
        meaning=f"{first.meaning}, mean of {count} windows",
        score=score,
        query=replace(first.query, words=query, tokens=()),
        document=replace(first.document, words=found, tokens=(), truncation=truncation),
        special=(),
        gap=None if None in gaps else float(np.mean(gaps)),
        passes=sum(part.passes for part in parts),
    )
