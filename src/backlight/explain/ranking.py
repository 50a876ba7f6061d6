"""Rank documents for a query, and explain the best of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from backlight.errors import InputError
from backlight.explain.attribution import Ranked, Ranking, truncation_of
from backlight.explain.checks import check_readable, check_same_scores
from backlight.explain.methods import DEFAULT, method_called
from backlight.models.pairs import DOCUMENT


def rank_and_explain(
    ranker,
    query: str,
    documents: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    method: str = DEFAULT,
    top: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
    **options,
) -> Ranking:
    """Rank documents for a query and explain the best of them.

    Args:
        ranker: a scorer (see NOTE [A scorer]).
        names: what to call the documents; their numbers by default.
        method: how to explain, a name of `METHODS`.
        top: how many to explain; all by default.
        advance: called with the number of documents newly scored or explained.
        options: of the method.

    Raises:
        InputError: there is no document, or a text holds nothing that the model reads.
        RuntimeError: a score has no gradient (see NOTE [The leaf]).
    """
    if not documents:
        raise InputError("there must be a document at least, got none")
    if top is not None and top < 0:
        raise InputError(f"top must be 0 or more, got {top}")
    chosen_method = method_called(method)
    names = [f"document {number}" for number in range(1, len(documents) + 1)] if names is None else names
    pairs = ranker.read([(query, document) for document in documents])
    pairs = [replace(pair, name=name) for pair, name in zip(pairs, names, strict=True)]
    for pair in pairs:
        check_readable(pair)
    scores = ranker.rank_scores(query, documents, advance)
    order = np.argsort(-scores, kind="stable").tolist()
    chosen = order[:top]
    best = [pairs[i] for i in chosen]
    found = chosen_method.explain(ranker, best, advance=advance, **options) if best else []
    check_same_scores([one.score for one in found], scores[chosen], best)
    explained = {i: replace(one, score=float(scores[i])) for i, one in zip(chosen, found)}
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
                score=float(scores[i]),
                activated=float(activated[i]),
                truncation=truncation_of(pairs[i], DOCUMENT),
                attribution=explained.get(i),
            )
            for rank, i in enumerate(order, 1)
        ),
    )
