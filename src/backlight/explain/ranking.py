"""Rank documents for a query, and explain the best of them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Attribution, NotReranked, Ranked, Ranking, Word, truncation_of
from backlight.explain.checks import check_same_scores
from backlight.explain.methods.registry import DEFAULT, METHODS, Method, method_called
from backlight.explain.presentation.wording import NAMED, count_of, spelling_line
from backlight.explain.verification import ExplainedDocument, check_explanations
from backlight.explain.windows import (
    BEST,
    MAX_WINDOWS,
    PreselectedWindows,
    ScoredDocument,
    WindowOptions,
    cut_by_document,
    read_in_windows,
    read_named,
    score_documents,
)
from backlight.explain.words import each_word, is_mark
from backlight.models.bi_encoder import BiEncoder
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.retrieval.index import Index, Retrieval, build_index, candidate_count
from backlight.models.scorer import Progress, Scorer, Texts, no_progress
from backlight.system.user_warnings import warn_outside


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
    max_windows: int = MAX_WINDOWS,
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
    reading = WindowOptions(windows, stride, max_windows)
    read = read_named(ranker, [(query, document) for document in documents], names, reading)
    if max(map(len, read)) == 1 and (top is None or top >= len(documents)):
        scored, made = _explained_at_once(ranker, chosen_method, [pair for (pair,) in read], progress, options)
    else:
        scored, made = score_documents(ranker, read, reading, progress), None
    scores = np.array([one.score for one in scored], np.float32)
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = order[:top]
    if made is None:
        explained = _explained(ranker, chosen_method, {i: scored[i] for i in chosen}, progress, options)
    else:
        explained = dict(enumerate(made))
    taken = {i: tuple(scored[i].pairs[part] for part in scored[i].explained) for i in chosen}
    explained = _with_execution(ranker, taken, explained)
    if check and explained:
        to_check = [ExplainedDocument(taken[i], explained[i]) for i in chosen]
        explained = dict(zip(chosen, check_explanations(ranker, to_check, float(np.ptp(scores)))))
    activated = ranker.activate(scores)
    return Ranking(
        query=query,
        model=ranker.name,
        score_name=ranker.score_name,
        method=method,
        max_tokens=ranker.max_tokens,
        query_truncation=truncation_of(scored[order[0]].best_pair, QUERY),
        documents=tuple(
            Ranked(
                rank=rank,
                name=names[i],
                index=i,
                text=documents[i],
                score=float(scores[i]),
                activated=float(activated[i]),
                truncation=truncation_of(scored[i].best_pair, DOCUMENT),
                window=scored[i].window(),
                attribution=explained.get(i),
                read_as=scored[i].best_pair.read_as,
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
    similarity: BiEncoder | None = None,
    **options,
) -> Ranking:
    """Rank the candidates of a long list as `rank_and_explain` does, the rest below in the retriever's order.

    Other arguments and errors as `Reranker.rank`.

    Args:
        similarity: the bi-encoder that the retriever names, where it is loaded already.

    Raises:
        InputError: the index is of other documents.
    """
    if isinstance(retriever, Index) and list(retriever.documents) != list(documents):
        raise InputError("the retriever must be an index of the documents that are ranked, got one of others")
    count = candidate_count(len(documents), candidates, retriever)
    if count == len(documents):
        return rank_and_explain(ranker, query, documents, names, **options)
    names = names_of(documents) if names is None else names
    index = retriever if isinstance(retriever, Index) else build_index(documents, retriever, model=similarity)
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
    max_windows: int = MAX_WINDOWS,
    check: bool = True,
    **options,
) -> Attribution:
    """Return the explanation of one pair; arguments and errors as `Reranker.explain`."""
    chosen = method_called(method)
    reading = WindowOptions(windows, stride, max_windows)
    (pairs,) = read_named(ranker, [(query, document)], ["the document"], reading)
    if len(pairs) > 1:
        (scored,) = score_documents(ranker, [pairs], reading, no_progress)
        made = _explained(ranker, chosen, {0: scored}, no_progress, options)[0]
        pairs = [scored.pairs[part] for part in scored.explained]
    else:
        (made,) = chosen.explain(ranker, pairs, **options)
    (made,) = _with_execution(ranker, {0: pairs}, {0: made}).values()
    return check_explanations(ranker, [ExplainedDocument(tuple(pairs), made)])[0] if check else made


def scores_in_windows(
    ranker: Scorer,
    pairs: Sequence[Texts],
    windows: str | None = BEST,
    stride: int | None = None,
    max_windows: int = MAX_WINDOWS,
    at_once: int | None = None,
) -> np.ndarray:
    """Return the raw score of each pair of texts, long documents read in windows (see NOTE [Windows]); (pairs,).

    Args:
        at_once: how many pairs, or windows, run at once; by default as many as are fastest.
    """
    reading = WindowOptions(windows, stride, max_windows)
    read = read_in_windows(ranker, pairs, reading)
    others = [misspellings for some in read if (misspellings := some[0].read_as)]
    if others:
        said = ", ".join(dict.fromkeys(filter(None, (spelling_line([one]) for one in others[:NAMED]))))
        warn_outside(
            f"words of {count_of(len(others), 'query', 'queries')} are read as others: {said}"
            f"{', …' if len(others) > NAMED else ''} (read_typos=False reads them as they are written)"
        )
    many = sum(isinstance(some, PreselectedWindows) for some in read)
    if many:
        warn_outside(
            f"{many} of {len(pairs)} documents have more than {max_windows} windows: of each only {max_windows} were "
            "scored (max_windows=0 scores all; rank says which)"
        )
    if at_once is None:
        scored = score_documents(ranker, read, reading, no_progress)
    else:
        parts = _chunks(chain.from_iterable(read), at_once)
        scores = [score for part in parts for score in ranker.score(PairBatch.of(part)).tolist()]
        scored = cut_by_document(read, np.array(scores, np.float32), reading)
    return np.array([one.score for one in scored], np.float32)


def _chunks(pairs: Iterator[Pair], size: int) -> Iterator[list[Pair]]:
    while some := list(islice(pairs, size)):
        yield some


def _explained_at_once(
    ranker: Scorer, method: Method, pairs: Sequence[Pair], progress: Progress, options: dict
) -> tuple[list[ScoredDocument], list[Attribution]]:
    """Return scores and explanations of pairs that are all explained: the scores come out of the explaining pass."""
    made = method.explain(ranker, pairs, progress=lambda done: progress(2 * done), **options)
    return [ScoredDocument((pair,), np.array([one.score], np.float32), None) for pair, one in zip(pairs, made)], made


def _explained(
    ranker: Scorer, method: Method, scored: dict[int, ScoredDocument], progress: Progress, options: dict
) -> dict[int, Attribution]:
    pairs = [one.pairs[i] for one in scored.values() for i in one.explained]
    ordinary = np.array([one.scores[i] for one in scored.values() for i in one.explained])
    known = {"scores": ordinary} if method.takes_scores else {}
    each = progress if len(pairs) == len(scored) else no_progress
    found = method.explain(ranker, pairs, progress=each, **known, **options) if pairs else []
    check_same_scores([one.score for one in found], ordinary.tolist(), pairs, ranker.rounding)
    found = iter([replace(one, score=score) for one, score in zip(found, ordinary.tolist())])
    explained = {}
    for place, one in scored.items():
        made = mean_of([next(found) for _ in one.explained], one.score, one.tokens_read)
        explained[place] = replace(made, window=one.window())
    if each is no_progress:
        progress(len(explained))
    return explained


def _with_execution(
    ranker: Scorer, pairs: dict[int, Sequence[Pair]], explained: dict[int, Attribution]
) -> dict[int, Attribution]:
    """Return explanations that say how the model ran their pairs (see `Execution`)."""
    methods = {name for one in explained.values() for name in (one.method, one.estimate or "")}
    known = [METHODS.get(name.partition(":")[0]) for name in methods]
    gradients = any(method is not None and method.takes_gradients for method in known)
    found = ranker.execution([pair for some in pairs.values() for pair in some], gradients=gradients)
    return {place: replace(one, execution=found) for place, one in explained.items()}


def _mean_word(same: Sequence[Word], count: int) -> Word:
    """Return a word of a document that was read in `count` windows, from those that hold it."""
    effects = [word.effect for word in same if word.effect is not None]
    return replace(
        same[0],
        value=sum(word.value for word in same) / count,
        effect=sum(effects) / count if len(effects) == len(same) else None,
    )


def _words_outside(text: str, words: Sequence[Word]) -> int:
    """Return how many words of a text have no character in common with words that were read, in their order.

    Punctuation is not counted.
    """
    starts = [word.start for word in words]
    outside = 0
    for start, end in each_word(text):
        before = bisect_left(starts, end)  # words that begin before this one ends: the last of them reaches furthest
        outside += (not before or words[before - 1].end <= start) and not is_mark(text[start:end])
    return outside


def mean_of(parts: Sequence[Attribution], score: float, tokens_read: int | None = None) -> Attribution:
    """Return the explanation of the mean of several windows' scores from the windows' explanations.

    Args:
        score: the mean of the windows' scores.
        tokens_read: how many of the document's tokens stand in these windows; None if all do.
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
    reach = first.document.truncation
    total = reach.tokens_read + reach.tokens_left_out
    known = total if tokens_read is None else tokens_read
    truncation = replace(
        reach,
        tokens_left_out=total - known,
        tokens_read=known,
        words_left_out=_words_outside(text, found),
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
