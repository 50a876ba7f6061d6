"""Rank documents for a query, and explain the best of them.

NOTE [Windows]
A document that is longer than the model reads is cut at its end, or, with `windows`, read in windows that
overlap. `best` ranks it by its best window and explains that one. `mean` ranks it by the mean of all; the explanation
of a mean is the mean of the explanations, and a word that several windows read gets a share of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, NotReranked, Ranked, Ranking, Window, Word, truncation_of
from backlight.explain.checks import check_readable, check_same_scores
from backlight.explain.methods.registry import DEFAULT, Method, method_called
from backlight.explain.verification import ExplainedDocument, check_explanations
from backlight.explain.words import word_spans
from backlight.models.pairs import DOCUMENT, Pair
from backlight.models.retrieval.index import Index, Retrieval, build_index, candidate_count
from backlight.models.scorer import Progress, Scorer, no_progress

WINDOWS = ("best", "mean")


def check_windows(how: str | None) -> None:
    """Raise unless long documents can be read so."""
    if how not in (None, *WINDOWS):
        raise InputError(f"windows must be one of {', '.join(WINDOWS)}, or None, got {how}")


@dataclass(frozen=True, eq=False)
class Scored:
    """A document as it was scored: its one pair, or a pair for each of its windows."""

    pairs: tuple[Pair, ...]
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
        return Window("best", self.best + 1, len(self.pairs), *self.pairs[self.best].characters_read(DOCUMENT))


def rank_and_explain(
    ranker: Scorer,
    query: str,
    documents: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    method: str = DEFAULT,
    top: int | None = None,
    windows: str | None = None,
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
    if windows is None and (top is None or top >= len(documents)):
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
    ranker: Scorer, query: str, document: str, *, method: str = DEFAULT, check: bool = True, **options
) -> Attribution:
    """Return the explanation of one pair; arguments and errors as `Reranker.explain`."""
    pairs = ranker.read([(query, document)])
    check_readable(pairs[0])
    (made,) = method_called(method).explain(ranker, pairs, **options)
    return check_explanations(ranker, [ExplainedDocument(tuple(pairs), made)])[0] if check else made


def _read(
    ranker: Scorer,
    query: str,
    documents: Sequence[str],
    names: Sequence[str],
    windows: str | None,
    stride: int | None,
) -> list[list[Pair]]:
    """Return the pairs of each document: one, or one for each of its windows."""
    check_windows(windows)
    if windows is None:
        read = [[pair] for pair in ranker.read([(query, document) for document in documents])]
    else:
        read = [ranker.windows(query, document, stride) for document in documents]
    for pairs, name in zip(read, names, strict=True):
        pairs[:] = [replace(pair, name=name, windowed=len(pairs) > 1) for pair in pairs]
        check_readable(pairs[0])
    return read


def _scored(ranker: Scorer, read: Sequence[Sequence[Pair]], windows: str | None, progress: Progress) -> list[Scored]:
    if windows is None:
        scores = ranker.scores_of([pair for (pair,) in read], progress)
        return [Scored(tuple(pairs), score[None], None) for pairs, score in zip(read, scores)]
    scores = ranker.scores_of([pair for pairs in read for pair in pairs])
    progress(len(read))
    ends = np.cumsum([len(pairs) for pairs in read])
    return [Scored(tuple(pairs), part, windows) for pairs, part in zip(read, np.split(scores, ends[:-1]))]


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
        words_left_out=sum(not any(a < end and start < b for a, b in covered) for start, end in word_spans(text)),
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
