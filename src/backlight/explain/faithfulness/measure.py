"""What a study measures, and how on one pair: explanations by each method, what the score does as their words leave,
and what becomes of the document's place among its rivals.

Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, doi:10.1145/582415.582418 (nDCG).
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from backlight.errors import BacklightError, InputError
from backlight.explain.attribution import Attribution
from backlight.explain.faithfulness.curves import (
    SHARES,
    TENTHS,
    aopc,
    beam_bounds,
    counts,
    deletion,
    importance,
    insertion,
    only_first,
    runs_of_words,
    strongest_first,
    without_first,
    word_values,
)
from backlight.explain.faithfulness.questions import Question
from backlight.explain.faithfulness.removal import DocumentScores, scores_of
from backlight.explain.methods.registry import Method
from backlight.models.pairs import Pair
from backlight.models.scorer import Scorer

ALWAYS = ("random", "embedding-magnitude")  # what any explanation must beat is in every table


@dataclass(frozen=True)
class Variant:
    """A method with its options."""

    method: Method
    options: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The variant's name on the command line: the method's name, then `:option=value` for each option."""
        return "".join([self.method.name, *(f":{name}={value}" for name, value in self.options.items())])

    @property
    def title(self) -> str:
        """What the variant is called in a table."""
        values = ", ".join(str(value) for value in self.options.values())
        return f"{self.method.title}, {values}" if values else self.method.title

    def __call__(self, ranker: Scorer, pairs: Sequence[Pair]) -> list[Attribution]:
        """Return the explanation of each pair."""
        return self.method.explain(ranker, pairs, **self.options)


@dataclass(frozen=True)
class Plan:
    """How much is measured. Pairs stand in a random order, so that the first of them are a sample too.

    Args:
        pairs: on how many pairs the score is watched as words leave the attention mask.
        budget: passes through the model that a method may take for its explanations in all. A method that needs more
            than `budget / pairs` a pair explains fewer pairs, the first ones, but `fewest` at least.
        detailed: on how many pairs words are dropped from the text too, and curves go on to the last word.
        ranked: on how many pairs the document's place among its rivals is watched.
        bounds: on how many pairs AOPC is held against its bounds.
        checked: pairs on which the batch effect and randomisation are checked; fewer for a costly method.
        shortcut: on how many pairs a shortcut is looked for.
        links: on how many pairs interactions are held against links.
        slow_links: on how many of them integrated Hessians are.
        seed: of the choice of pairs, of random weights and of the intervals.
    """

    pairs: int = 500
    budget: int = 2_000
    fewest: int = 12
    detailed: int = 40
    ranked: int = 100
    bounds: int = 12
    checked: int = 16
    shortcut: int = 16
    links: int = 60
    slow_links: int = 8
    seed: int = 0

    def __post_init__(self):
        for name, value in asdict(self).items():
            if value < (0 if name == "seed" else 1):
                raise InputError(f"{name} must be 1 or more, got {value}")

    def share_of(self, passes: float, pairs: int) -> int:
        """Return how many of the pairs there are a method explains that takes this many passes a pair."""
        return min(pairs, max(self.fewest, int(self.budget / passes))) if passes else pairs


def check_variants(variants: Sequence[Variant]) -> None:
    """Raise if a variant is there twice: results are kept by label."""
    labels = [variant.label for variant in variants]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(f"methods must differ, got {', '.join(twice)} twice")


CUT = 10  # places of a list that count


def rank_among(score: float, rivals: Sequence[float]) -> float:
    """Return the place of a score among its rivals', from 1; among equals the mean one."""
    rivals = np.asarray(rivals, np.float64)
    return float(1 + (rivals > score).sum() + (rivals == score).sum() / 2)


def ndcg(scores: Sequence[float], labels: Sequence[float], cut: int = CUT) -> float:
    """Return the nDCG of a list: Σ (2^label − 1) / log₂(place + 1) over the best `cut`, as a share of the best order's.

    Of documents with equal scores the less relevant comes first. A list without a relevant document has 0.
    """
    scores, labels = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    gains = np.exp2(labels) - 1
    discounts = 1 / np.log2(np.arange(2, min(cut, len(gains)) + 2))
    by_score = gains[np.lexsort((gains, -scores))][: len(discounts)]
    best = np.sort(gains)[::-1][: len(discounts)] @ discounts
    return float(by_score @ discounts / best) if best > 0 else 0.0


def measure_pair(
    ranker: Scorer,
    question: Question,
    variants: Sequence[Variant],
    *,
    ranked: bool = False,
    detailed: bool = False,
    bounds: bool = False,
) -> dict:
    """Return what was measured on a question's document, as plain data.

    Args:
        ranked: also watch the document's place among its rivals.
        detailed: also drop the words from the text, and follow the curves to the last word.
        bounds: also hold each AOPC against the bounds of the document.
    """
    (pair,) = ranker.read([(question.text, question.document)])
    explained, results, failed = explanations(ranker, pair, variants)
    scores = DocumentScores(ranker, pair)
    values = {label: word_values(one, scores.words) for label, one in explained.items()}
    orders = {label: strongest_first(importance(values[label], one.signed)) for label, one in explained.items()}
    _score_all(scores, orders.values(), TENTHS if detailed else SHARES)
    found = {"score": scores.whole, "words": len(scores), "tokens": len(pair), "failed": failed}
    for label, order in orders.items():
        results[label]["mask"] = _curves(scores, order)
    if ranked and question.rivals:
        found |= _ranks(ranker, question, scores.whole, results)
    if detailed:
        _add_details(ranker, pair, scores, explained, values, orders, results)
    if bounds:
        found["bounds"] = _add_bounds(ranker, pair, explained, values, results)
    return found | {"methods": results}


def explanations(
    ranker: Scorer, pair: Pair, variants: Sequence[Variant]
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


def _score_all(scores: DocumentScores, orders: Iterable[np.ndarray], shares: Sequence[float]) -> None:
    """Score all sets of words that the curves will ask for, as many at once as a pass takes."""
    numbers = counts(shares, len(scores))
    keeps = [made(order, numbers) for order in orders for made in (without_first, only_first)]
    if keeps:
        scores(np.concatenate(keeps))


def _ranks(ranker: Scorer, question: Question, full_score: float, results: Mapping[str, dict]) -> dict:
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


def _add_details(
    ranker: Scorer,
    pair: Pair,
    scores: DocumentScores,
    explained: Mapping[str, Attribution],
    values: Mapping[str, np.ndarray],
    orders: Mapping[str, np.ndarray],
    results: Mapping[str, dict],
) -> None:
    """Add curves to the last word, curves of dropped words, and for signed methods the order by size."""
    cut = DocumentScores(ranker, pair, "drop")
    _score_all(cut, orders.values(), SHARES)
    for label, order in orders.items():
        method = results[label]
        method["tenths"], method["drop"] = _curves(scores, order, TENTHS), _curves(cut, order)
        if explained[label].signed:
            method["by_size"] = deletion(scores, strongest_first(np.abs(values[label]))).tolist()


def _add_bounds(
    ranker: Scorer,
    pair: Pair,
    explained: Mapping[str, Attribution],
    values: Mapping[str, np.ndarray],
    results: Mapping[str, dict],
) -> list[float]:
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


def _curves(scores: DocumentScores, order: np.ndarray, shares: Sequence[float] = SHARES) -> dict[str, list[float]]:
    """Return the scores without the first words of an order, and with only these, as plain data."""
    return {name: curve(scores, order, shares).tolist() for name, curve in CURVES.items()}


CURVES = {"deletion": deletion, "insertion": insertion}
