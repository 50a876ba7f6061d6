"""Leave one out: how much the score falls when a word is deleted, measured for the strongest words.

NOTE [Measured and estimated]
A cheap method (the *estimate*: `deletion-gradient`, two passes) puts the words of a pair in an order. In that order
words are deleted from the text, one at a time (the query's few before the document's weak ones), and the pair is
scored again: score − score without the word is the word's *effect*, and that is the value which is shown. How many
words are measured follows from a budget; on a small model and a short text it is all of them. Words that were not
measured have no `effect` and keep the estimate, scaled to the effects and below the strongest of them: their order is
worth something, their signs less. A pair without an estimate (its gradient is zero, as where document and query are
the same, or the model shows no attentions) is measured in the order of its words: those in both texts first, then
long ones; its other words are 0, and `estimate` is "none".

Deletion is what a reader can repeat with `predict`, and gives texts like those the model was trained on, which gaps in
the positions (`mask`) or [MASK] are not: see NOTE [Ways to leave words out] and docs/faithfulness.md for the figures.

NOTE [Together]
Words may act only together: without either half of a name the score may hardly move, and fall without both. So the
strongest neighbours, and pairs of the strongest words, are deleted together as well while the budget lasts. They are
reported where their joint effect differs from the sum of their own effects.

Source: Li, Monroe, Jurafsky, Understanding Neural Networks through Representation Erasure, 2016, arXiv:1612.08220.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from backlight.errors import GraphError, InputError
from backlight.explain.attribution import Attribution, Joint, Recipe, Word
from backlight.explain.methods.ablation import Removal, passes_of_removal, removal_called, score_groups
from backlight.explain.methods.attention import attention_rollout, attention_x_gradient
from backlight.explain.methods.by_batch import Pairs, Scores
from backlight.explain.methods.decompx import decompx
from backlight.explain.methods.gradients import gradient_x_input, saliency, saliency_l2
from backlight.explain.methods.integrated_gradients import integrated_gradients
from backlight.explain.methods.layers import layer_gradient_x_activation
from backlight.explain.methods.mask_gradient import deletion_gradient, mask_gradient
from backlight.explain.parts import STRONGEST, Part, attribute_parts, phrase_parts, sentence_parts, word_parts
from backlight.explain.words import is_mark
from backlight.models.pairs import DOCUMENT, QUERY, Pair
from backlight.models.scorer import Progress, Scorer, no_progress

UNITS: dict[str, Callable[..., list[Part]]] = {"word": word_parts, "span": phrase_parts, "sentence": sentence_parts}
ESTIMATES: dict[str, Callable[..., list[Attribution]]] = {
    "deletion-gradient": deletion_gradient,
    "mask-gradient": mask_gradient,
    "layer-gradient-x-activation": layer_gradient_x_activation,
    "gradient-x-input": gradient_x_input,
    "attention-x-gradient": attention_x_gradient,
    "attention-rollout": attention_rollout,
    "saliency": saliency,
    "saliency-l2": saliency_l2,
    "integrated-gradients": integrated_gradients,
    "decompx": decompx,
}
ESTIMATE = "deletion-gradient"
BUDGET = 0.5  # seconds for measuring more than those
QUERY_WORDS = 12  # of the query's, so many are measured before the document's weaker ones
A_ROUND = 8  # words of each pair that are measured between two looks at the clock
STRONG = 6  # neighbours, and strongest words, that are deleted together
NOT_ADDITIVE = 0.1  # of the largest effect: a joint effect that differs by more is reported


@dataclass(eq=False)
class _Pair:
    """A pair with what is known of its parts so far."""

    pair: Pair
    parts: list[Part]
    score: float
    estimates: np.ndarray  # (parts,), zeros where there is no estimate
    estimate: str | None  # the method that gave them
    passes: float
    effects: np.ndarray = field(init=False)  # (parts,), NaN where none was measured
    order: list[int] = field(init=False)  # parts that wait to be measured, strongest first
    joint: dict[tuple[int, ...], float] = field(default_factory=dict)

    def __post_init__(self):
        self.effects = np.full(len(self.parts), np.nan)
        marks = [_is_mark(self.pair, part) for part in self.parts]
        keys = [-abs(value) for value in self.estimates] if self.estimate else _without_estimate(self.pair, self.parts)
        self.order = sorted(range(len(self.parts)), key=lambda place: (marks[place], keys[place]))
        first = [place for side in (DOCUMENT, QUERY) for place in self._of(side)[: STRONGEST[side]]]
        few = [place for place in self._of(QUERY)[:QUERY_WORDS] if not marks[place]]
        self.order = list(dict.fromkeys([*first, *few, *self.order]))
        self.first = len(first)

    def _of(self, side: int) -> list[int]:
        return [place for place in self.order if self.parts[place].side == side]

    def together(self) -> list[tuple[int, ...]]:
        """Return the sets of parts to delete together, of those that were measured (see NOTE [Together])."""
        size = np.abs(self.effects)
        known = [place for place in range(len(self.parts)) if not np.isnan(size[place])]
        words = [place for place in known if not _is_mark(self.pair, self.parts[place])]
        neighbours = [(a, b) for a, b in zip(words, words[1:]) if b == a + 1 and self._adjacent(a, b)]
        neighbours.sort(key=lambda both: -size[list(both)].sum())
        strongest = sorted((p for p in words if self.parts[p].side == DOCUMENT), key=lambda place: -size[place])[:4]
        couples = [tuple(sorted((a, b))) for i, a in enumerate(strongest) for b in strongest[i + 1 :]]
        return list(dict.fromkeys([*neighbours[:STRONG], *couples[:STRONG]]))

    def _adjacent(self, a: int, b: int) -> bool:
        first, second = self.parts[a], self.parts[b]
        return first.side == second.side and not self.pair.text(first.side)[first.end : second.start].strip()


def leave_one_out(
    ranker: Scorer,
    pairs: Pairs,
    *,
    unit: str = "word",
    by: str = "drop",
    words: int | None = None,
    budget: float | None = None,
    estimate: str | None = None,
    scores: Scores = None,
    progress: Progress = no_progress,
) -> list[Attribution]:
    """Return the score lost when each word is deleted, measured for the strongest words: score − score without it.

    See NOTE [Measured and estimated].

    Args:
        unit: what is deleted: a "word", "span" (a phrase between function words) or "sentence".
        by: how words are removed, a key of `WAYS` (see NOTE [Ways to leave words out]).
        words: the number of words to measure per pair; by default as many as the budget allows, at least 5 of the
            document and 3 of the query.
        budget: seconds for measuring the words of all pairs; by default ½. An explicit budget is kept even if it is
            too small for the first words.
        estimate: the method that orders the words, a key of `ESTIMATES`, and its options: "saliency",
            "layer-gradient-x-activation:layer=5"; by default "deletion-gradient" (a `Reranker` uses the one saved in
            the model's folder by `backlight evaluate --save`). Others as in NOTE [A method].

    Raises:
        InputError: an option is unknown, or a score is not finite.
    """
    remove, parts_of = removal_called(by), _unit_called(unit)
    if words is not None and words < 1:
        raise InputError(f"words must be 1 or more, got {words}")
    if budget is not None and not budget > 0:
        raise InputError(f"budget must be a number of seconds above 0, got {budget}")
    estimate = estimate or ESTIMATE
    estimator = _estimator_called(estimate)
    known = _estimated(ranker, pairs, scores, (estimate, estimator), parts_of)
    half = len(pairs) // 2
    progress(half)
    _measure(ranker, known, remove, words, budget)
    settings = {"unit": unit, "by": by}
    found = [_attribution(ranker, one, by, settings) for one in known]
    progress(len(pairs) - half)
    return found


def _unit_called(name: str) -> Callable[..., list[Part]]:
    if name not in UNITS:
        raise InputError(f"unit must be one of {', '.join(UNITS)}, got {name}")
    return UNITS[name]


def _estimator_called(label: str) -> Callable[..., list[Attribution]]:
    """Return the method of a label, `name` or `name:option=value:option=value`."""
    name, *options = label.split(":")
    if name not in ESTIMATES:
        raise InputError(f"estimate must be one of {', '.join(ESTIMATES)}, got {name}")
    found = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or key not in inspect.signature(ESTIMATES[name]).parameters:
            raise InputError(f"estimate must be NAME:OPTION=VALUE with options of {name}, got {option}")
        found[key] = int(value) if value.removeprefix("-").isdecimal() else value
    return partial(ESTIMATES[name], **found)


def _estimated(
    ranker: Scorer,
    pairs: Pairs,
    scores: Scores,
    estimate: tuple[str, Callable[..., list[Attribution]]],
    parts_of: Callable[[Pair], list[Part]],
) -> list[_Pair]:
    """Return pairs with the estimates of their parts; where a pair has none (no gradient, no embeddings), without."""
    if not pairs:
        return []
    name, estimator = estimate
    try:
        takes = scores is not None and "scores" in inspect.signature(estimator).parameters
        found = estimator(ranker, pairs, **({"scores": scores} if takes else {}))
    except (GraphError, InputError):
        if len(pairs) > 1:
            alone = [slice(number, number + 1) for number in range(len(pairs))]
            return [
                one
                for own in alone
                for one in _estimated(ranker, pairs[own], None if scores is None else scores[own], estimate, parts_of)
            ]
        (pair,) = pairs
        score = float((ranker.scores_of(pairs) if scores is None else scores)[0])
        parts = parts_of(pair)
        return [_Pair(pair, parts, score, np.zeros(len(parts)), None, 1)]
    read = []
    for pair, made in zip(pairs, found, strict=True):
        parts = parts_of(pair)
        read.append(_Pair(pair, parts, made.score, _summed(parts, made), name, made.passes))
    return read


def _summed(parts: Sequence[Part], made: Attribution) -> np.ndarray:
    """Return each part's estimate: the sum over the words that lie in it; (parts,)."""
    words = {QUERY: made.query.words, DOCUMENT: made.document.words}
    return np.array(
        [sum(word.value for word in words[part.side] if part.start <= word.start < part.end) for part in parts],
        np.float64,
    )


def _without_estimate(pair: Pair, parts: Sequence[Part]) -> list[tuple]:
    """Return sort keys for parts of which nothing is known: those in both texts first, then the longest."""
    spoken = {side: {_text_of(pair, part) for part in parts if part.side == side} for side in (QUERY, DOCUMENT)}
    both = spoken[QUERY] & spoken[DOCUMENT]
    return [(_text_of(pair, part) not in both, part.start - part.end) for part in parts]


def _text_of(pair: Pair, part: Part) -> str:
    return pair.text(part.side)[part.start : part.end].lower()


def _is_mark(pair: Pair, part: Part) -> bool:
    return is_mark(pair.text(part.side)[part.start : part.end])


class _Budget:
    """Seconds for deletions, and how many of them the rest will do."""

    def __init__(self, seconds: float):
        self.ends = time.monotonic() + seconds
        self.each = 0.0  # seconds that a deletion took the last time

    def first_of(self, deletions: list) -> list:
        """Return those that the time left is enough for."""
        left = self.ends - time.monotonic()
        if left <= 0:
            return []
        return deletions[: int(left / self.each)] if self.each * len(deletions) > left else deletions

    def spend(self, ranker: Scorer, deletions: list, remove: Removal) -> None:
        """Make deletions, and note what one took."""
        started = time.monotonic()
        _measure_effects(ranker, deletions, remove)
        self.each = (time.monotonic() - started) / len(deletions) if deletions else self.each


def _measure(ranker: Scorer, known: Sequence[_Pair], remove: Removal, words: int | None, seconds: float | None) -> None:
    """Delete words round by round, strongest first, until the budget is spent or none is left."""
    budget = _Budget(BUDGET if seconds is None else seconds)
    free = seconds is None  # the first round is made however long it takes
    for deletions in _rounds(known, words, seconds):
        affordable = deletions if free or words is not None else budget.first_of(deletions)
        budget.spend(ranker, affordable, remove)
        free = False
        if len(affordable) < len(deletions):
            break
    if words is None:
        budget.spend(ranker, budget.first_of([(one, places) for one in known for places in one.together()]), remove)


def _rounds(
    known: Sequence[_Pair], words: int | None, budget: float | None
) -> Iterator[list[tuple[_Pair, tuple[int, ...]]]]:
    """Yield the deletions of each round: the first words of all pairs, then some more of each."""
    places = [one.order if words is None else one.order[:words] for one in known]
    if budget is not None:  # a single one shows what one costs
        yield [(one, (own[0],)) for one, own in zip(known, places) if own][:1]
    start = [one.first if words is None else len(own) for one, own in zip(known, places)]
    first = [(one, (place,)) for one, own, end in zip(known, places, start) for place in own[:end]]
    yield [(one, places) for one, places in first if np.isnan(one.effects[places[0]])]
    while any(begin < len(own) for begin, own in zip(start, places)):
        yield [
            (one, (place,)) for one, own, begin in zip(known, places, start) for place in own[begin : begin + A_ROUND]
        ]
        start = [begin + A_ROUND for begin in start]


def _measure_effects(ranker: Scorer, group: Sequence[tuple[_Pair, tuple[int, ...]]], remove: Removal) -> None:
    """Measure effects, what a score loses: score pairs without parts of them. A word's value is its effect."""
    together: dict[int, tuple[_Pair, list[tuple[int, ...]]]] = {}
    for one, places in group:
        together.setdefault(id(one), (one, []))[1].append(places)
    made = (
        remove(ranker, one.pair, [[one.parts[p] for p in places] for places in sets]) for one, sets in together.values()
    )
    for (one, sets), found in zip(together.values(), score_groups(ranker, made)):
        one.passes += len(sets) * passes_of_removal(remove, one.pair)
        for places, score in zip(sets, found.tolist()):
            if len(places) == 1:
                one.effects[places[0]] = one.score - score
            else:
                one.joint[places] = one.score - score


def _attribution(ranker: Scorer, one: _Pair, by: str, settings: dict) -> Attribution:
    """Return the record of a pair: effects where they were measured, else estimates in their unit."""
    measured = ~np.isnan(one.effects)
    values = np.where(measured, one.effects, 0.0)
    for side in (QUERY, DOCUMENT):
        own = np.array([part.side == side for part in one.parts], bool)
        values[own & ~measured] = _scaled(one.estimates[own & ~measured], one, STRONGEST[side], own & measured)
    count = int(measured.sum())
    recipe = Recipe(
        "leave-one-out",
        "score − score without it",
        signed=True,
        baseline=f"the pair without it, by {by}",
        passes=one.passes,
        settings={**settings, "measured": count},
    )
    made = attribute_parts(one.pair, one.parts, values, recipe, ranker.name, one.score)
    texts = {}
    for side, text in ((QUERY, made.query), (DOCUMENT, made.document)):
        own = [bool(known) for part, known in zip(one.parts, measured) if part.side == side]
        words = tuple(replace(word, effect=word.value if known else None) for word, known in zip(text.words, own))
        texts[side] = replace(text, words=words)
    return replace(
        made,
        query=texts[QUERY],
        document=texts[DOCUMENT],
        estimate=None if measured.all() else one.estimate or "none",
        together=tuple(_joints(one, texts[QUERY].words, texts[DOCUMENT].words)),
    )


def _scaled(estimates: np.ndarray, one: _Pair, first: int, known: np.ndarray) -> np.ndarray:
    """Return estimates of words that were not measured in the unit of the effects, none above the strongest measured.

    Args:
        first: how many of the strongest measured words must stay the strongest.
        known: which parts of the same text were measured, (parts,).
    """
    measured = ~np.isnan(one.effects)
    size, most = np.abs(one.estimates[measured]).sum(), np.abs(estimates).max(initial=0.0)
    scale = np.abs(one.effects[measured]).sum() / size if size else 1.0
    strongest = np.sort(np.abs(one.effects[known]))[::-1][:first]
    if len(strongest) and most:
        scale = min(scale, 0.99 * strongest[-1] / most)
    return estimates * scale


def _joints(one: _Pair, query: Sequence[Word], document: Sequence[Word]) -> Iterator[Joint]:
    """Yield the sets of words whose joint effect is not the sum of their own, largest difference first."""
    words, most = (*query, *document), np.nanmax(np.abs(one.effects), initial=0.0)
    found = [(one.joint[places] - one.effects[list(places)].sum(), places) for places in one.joint]
    for difference, places in sorted(found, key=lambda entry: -abs(entry[0])):
        if abs(difference) > NOT_ADDITIVE * most:
            alone = float(one.effects[list(places)].sum())
            yield Joint(tuple(words[p] for p in places), one.joint[places], alone, places[0] < len(query))
