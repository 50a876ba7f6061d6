"""All that is measured on one pair: explanations by each method, and what the score does as their words leave."""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from backlight.errors import BacklightError
from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.bounds import beam_bounds, runs_of_words
from backlight.explain.faithfulness.curves import (
    SHARES,
    TENTHS,
    aopc,
    counts,
    deletion,
    importance,
    insertion,
    only_first,
    strongest_first,
    without_first,
    word_values,
)
from backlight.explain.faithfulness.plan import Variant
from backlight.explain.faithfulness.questions import Question
from backlight.explain.faithfulness.ranks import ndcg, rank_among
from backlight.explain.faithfulness.removal import DocumentScores, scores_of
from backlight.models.pairs import Pair


def measure_pair(
    ranker,
    question: Question,
    variants: Sequence[Variant],
    *,
    ranked: bool = False,
    close: bool = False,
    bounds: bool = False,
) -> dict:
    """Return what was measured on a question's document, as plain data.

    Args:
        ranked: also watch the document's place among its rivals.
        close: also drop the words from the text, and follow the curves to the last word.
        bounds: also hold each AOPC against the bounds of the document.
    """
    (pair,) = ranker.read([(question.text, question.document)])
    explained, results, failed = explanations(ranker, pair, variants)
    scores = DocumentScores(ranker, pair)
    values = {label: word_values(one, scores.words) for label, one in explained.items()}
    orders = {label: strongest_first(importance(values[label], one.signed)) for label, one in explained.items()}
    _score_all(scores, orders.values(), TENTHS if close else SHARES)
    found = {"score": scores.whole, "words": len(scores), "tokens": len(pair), "failed": failed}
    for label, order in orders.items():
        results[label]["mask"] = {
            "deletion": _list(deletion(scores, order)),
            "insertion": _list(insertion(scores, order)),
        }
    if ranked and question.rivals:
        found |= _ranks(ranker, question, scores.whole, results)
    if close:
        _add_details(ranker, pair, scores, explained, values, orders, results)
    if bounds:
        found["bounds"] = _add_bounds(ranker, pair, explained, values, results)
    return found | {"methods": results}


def explanations(
    ranker, pair: Pair, variants: Sequence[Variant]
) -> tuple[dict[str, Attribution], dict[str, dict], dict[str, str]]:
    """Explain a pair by each variant.

    Returns:
        The explanations by label; what each cost; and why those that failed did.
    """
    explained, results, failed = {}, {}, {}
    for variant in variants:
        start = time.process_time()
        try:
            (one,) = variant(ranker, [pair])
        except BacklightError as problem:
            failed[variant.label] = str(problem)
            continue
        seconds = time.process_time() - start
        explained[variant.label] = one
        results[variant.label] = {"passes": one.passes, "seconds": seconds, "gap": one.gap, "signed": one.signed}
    return explained, results, failed


def _score_all(scores: DocumentScores, orders, shares: Sequence[float]) -> None:
    """Score all sets of words that the curves will ask for, as many at once as a pass takes."""
    numbers = counts(shares, len(scores))
    keeps = [made(order, numbers) for order in orders for made in (without_first, only_first)]
    if keeps:
        scores(np.concatenate(keeps))


def _ranks(ranker, question: Question, full_score: float, results: Mapping[str, dict]) -> dict:
    """Return the document's place and its list's nDCG, and add those after deletion to each method."""
    rivals = scores_of(ranker, ranker.read([(question.text, rival) for rival in question.rivals]))
    labels = question.labels

    def standing(score: float) -> tuple[float, float | None]:
        return rank_among(score, rivals), None if labels is None else ndcg([score, *rivals], labels)

    for method in results.values():
        places, gains = zip(*(standing(score) for score in method["mask"]["deletion"]))
        method["ranks"] = list(places)
        if labels is not None:
            method["ndcgs"] = list(gains)
    place, gain = standing(full_score)
    return {"rank": place, "ndcg": gain, "rivals": len(rivals)}


def _add_details(ranker, pair: Pair, scores: DocumentScores, explained, values, orders, results) -> None:
    """Add curves to the last word, curves of dropped words, and for signed methods the order by size."""
    cut = DocumentScores(ranker, pair, "drop")
    _score_all(cut, orders.values(), SHARES)
    for label, order in orders.items():
        method = results[label]
        method["tenths"] = {
            "deletion": _list(deletion(scores, order, TENTHS)),
            "insertion": _list(insertion(scores, order, TENTHS)),
        }
        method["drop"] = {"deletion": _list(deletion(cut, order)), "insertion": _list(insertion(cut, order))}
        if explained[label].signed:
            method["by_size"] = _list(deletion(scores, strongest_first(np.abs(values[label]))))


def _add_bounds(ranker, pair: Pair, explained, values, results) -> list[float]:
    """Return the bounds of AOPC over runs of words, and add each method's AOPC and where it stands between them."""
    words = len(next(iter(values.values()))) if values else 1
    groups = runs_of_words(words)
    scores = DocumentScores(ranker, pair, groups=groups)
    found = {}
    for label, one in explained.items():
        sums = np.array([importance(values[label], one.signed)[group].sum() for group in groups])
        found[label] = aopc(scores, scores.whole, strongest_first(sums))
    bounds = beam_bounds(scores, scores.whole, len(groups)).including(*found.values())
    for label, value in found.items():
        results[label] |= {"aopc": value, "naopc": bounds.normalised(value)}
    return [bounds.low, bounds.high]


def _list(values: np.ndarray) -> list[float]:
    return [float(value) for value in values]
