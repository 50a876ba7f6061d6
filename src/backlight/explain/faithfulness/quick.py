"""A quick check of a model: which cheap method predicts best how the score changes without a word.

NOTE [The quick check]
Of each pair words of both texts are cut out, one at a time, and the pair is scored again: that is what is true. It is
held against what each method says.
    signs    of the five strongest words of the document (three of the query) those whose loss moves the score by more
             than 2 % of the range of the candidates' scores: the share whose sign is right
    top word the same of the document's strongest word alone
    order    Spearman's correlation of value and true effect, over words of the document that are drawn at random
All methods are held against the same words' effects, so a method more costs only its own passes. The check goes pair by
pair until its time is over: what was measured by then is a sample too.
"""

import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from backlight.errors import BacklightError
from backlight.explain.attribution import Attribution, Word
from backlight.explain.faithfulness.measure import Variant
from backlight.explain.faithfulness.questions import Listed
from backlight.explain.faithfulness.randomisation import spearman
from backlight.explain.methods.ablation import dropped
from backlight.explain.methods.leave_one_out import ESTIMATES
from backlight.explain.methods.registry import METHODS
from backlight.explain.parts import STRONGEST, Part, word_parts
from backlight.explain.verification import THRESHOLD
from backlight.models.pairs import DOCUMENT, QUERY, Pair, PairBatch
from backlight.models.scorer import Scorer
from backlight.models.scoring import passes
from backlight.report.intervals import Mean, mean_of

SECONDS = 100.0  # that a check takes at most
EARLY = 0.05  # share of the time before which it says nothing about the passes in all
PAIRS = 60  # at most, where nothing else is said
DRAWN = 40  # words of the document whose order counts
FEWEST = 4  # words that have an order
CANDIDATES = 8  # of a question at most
FEWEST_CANDIDATES = 3  # so that their scores have a range
GOOD = 0.9  # share of right signs from which a method may be believed by itself
SURE = 0.8  # and the lower end of its interval
ENOUGH = 6  # pairs from which a verdict may rest on: all of fewer may agree by chance (2 · ½⁵ > 0.05 > 2 · ½⁶)
NEAR = 0.05  # how much less than the best order counts as nearly as good
NEAR_SIGNS = 0.03  # the same of the share of right signs
GUESS = 3  # passes of a method that has not run yet
CONTROL = "random"
CHEAP = (
    *("deletion-gradient", "mask-gradient", "attention-x-gradient", "gradient-x-input"),
    *("saliency", "attention-rollout", "decompx"),
)
LOOKED_AT = 12  # questions that say how long documents are
SHORT = 128  # tokens of a pair
LAYERS = 5  # places between layers at most where gradient × activation is tried
SAMPLE = Path(__file__).parent / "sample.toml"


def sample() -> list[Listed]:
    """Return the questions that come with backlight: everyday subjects, three short candidates each."""
    rows = tomllib.loads(SAMPLE.read_text(encoding="utf-8"))["question"]
    labels = (1.0, 0.0, 0.0)
    return [Listed(row["query"], tuple(row["candidates"]), labels) for row in rows]


def cheap_variants(ranker: Scorer, questions: Sequence[Listed]) -> list[Variant]:
    """Return the methods of few passes, gradient × activation after several of the layers, and the control.

    DecompX is one of them where documents are short: it takes about a pass for each token.
    """
    lengths = [len(pair) for pair in ranker.read([(one.query, one.candidates[0]) for one in questions[:LOOKED_AT]])]
    short = np.mean(lengths) <= SHORT
    found = [Variant(METHODS[name]) for name in CHEAP if short or not METHODS[name].native]
    between = METHODS["layer-gradient-x-activation"]
    layers = layers_of(ranker)
    places = sorted({round(place) for place in np.linspace(1, layers - 1, min(LAYERS, max(1, layers - 1)))})
    found = [*(Variant(between, {"layer": place}) for place in places if place), *found]
    settings = {"baseline": "pad", "steps": 5, "max_steps": 5}
    return [*found, Variant(METHODS["integrated-gradients"], settings), Variant(METHODS[CONTROL])]


def layers_of(ranker: Scorer) -> int:
    """Return how many layers a model has; 0 where it does not show them."""
    try:
        return len(ranker.inside(PairBatch.of(ranker.read([("a", "a")]))).states) - 1
    except BacklightError:
        return 0


@dataclass(frozen=True)
class Held:
    """What a method said of a pair, held against what is true."""

    signs: tuple[bool, ...]  # of the strongest words of the document that are decisive, whether the sign is right
    query_signs: tuple[bool, ...]  # the same of the query's
    top: tuple[bool, ...]  # the same of the document's strongest word: one or none
    order: float | None
    passes: float
    seconds: float


@dataclass(frozen=True)
class QuickRow:
    """What was measured of a method; a figure is None where no word or pair has it."""

    variant: Variant
    pairs: int
    signs: Mean | None
    query_signs: Mean | None
    top: Mean | None
    order: Mean | None
    passes: float
    seconds: float
    failed: str | None = None  # why it could not explain a pair

    @property
    def label(self) -> str:
        """The method's name and options, as the command line has them."""
        return self.variant.label


@dataclass(frozen=True)
class State:
    """How far a check is."""

    passes: float
    expected: float  # passes in all, if time suffices
    pairs: int
    of: int


class _TimeIsOver(Exception):
    """Ends a check."""


@dataclass
class QuickCheck:
    """Measures methods on questions, pair by pair (see NOTE [The quick check]).

    Args:
        questions: in a random order.
        seconds: how long it measures, but for the first pair; None for all pairs.
        seed: of the words that are drawn, and of the intervals.
    """

    ranker: Scorer
    questions: Sequence[Listed]
    variants: Sequence[Variant]
    seconds: float | None = SECONDS
    seed: int = 0
    found: list[dict[str, Held]] = field(default_factory=list)  # of each pair that is done, by label
    failed: dict[str, str] = field(default_factory=dict)  # by label: the first reason
    _passes: float = 0.0
    _start: float = 0.0

    def run(self, progress: Callable[[State], None] = lambda state: None) -> None:
        """Measure until all pairs are done, or the time is over: a pair that is not done by then is dropped.

        The first pair is measured to its end, so that there is something to say.

        Args:
            progress: called after each batch of passes.
        """
        self._start, self._report = time.monotonic(), progress
        with suppress(_TimeIsOver):
            for number in range(len(self.questions)):
                self.found.append(self._pair(number))
                self._tick(0)

    def rows(self) -> list[QuickRow]:
        """Return what was found so far: the method of the best order first, the control last."""
        rows = [self._row(variant) for variant in self.variants]
        return sorted(rows, key=lambda row: (row.variant.method.name == CONTROL, -_value(row.order)))

    def _pair(self, number: int) -> dict[str, Held]:
        own, others = candidates_of(self.questions, number)
        read = self.ranker.read([(self.questions[number].query, text) for text in (*own, *others)])
        scores = self._scores(read)
        place = explained_place(self.questions[number].labels is not None, scores[: len(own)], number)
        pair, whole = read[place], scores[place]
        least = THRESHOLD * (max(scores) - min(scores))
        explained = {variant.label: self._explain(variant, pair) for variant in self.variants}
        explained = {label: one for label, one in explained.items() if one is not None}
        parts = self._parts(pair, [one for one, _ in explained.values()], number)
        without = self._scores(list(dropped(self.ranker, pair, [[part] for part in parts])))
        effects = {(part.side, part.start): whole - score for part, score in zip(parts, without)}
        drawn = [part.start for part in self._drawn(pair, number)]
        return {label: _held(one, effects, least, drawn, seconds) for label, (one, seconds) in explained.items()}

    def _explain(self, variant: Variant, pair: Pair) -> tuple[Attribution, float] | None:
        start = time.perf_counter()
        try:
            (one,) = variant(self.ranker, [pair])
        except BacklightError as problem:
            self.failed.setdefault(variant.label, str(problem))
            return None
        self._tick(one.passes)
        return one, time.perf_counter() - start

    def _parts(self, pair: Pair, explained: Sequence[Attribution], number: int) -> list[Part]:
        """Return the words that are cut out: those drawn, and those that a method finds strongest."""
        wanted = {(DOCUMENT, part.start) for part in self._drawn(pair, number)}
        for one in explained:
            for side in STRONGEST:
                wanted |= {(side, word.start) for word in strongest(one, side)}
        return [part for part in word_parts(pair) if (part.side, part.start) in wanted]

    def _drawn(self, pair: Pair, number: int) -> list[Part]:
        parts = word_parts(pair, DOCUMENT)
        if len(parts) < FEWEST:
            return []
        places = np.random.default_rng([self.seed, number]).permutation(len(parts))[:DRAWN]
        return [parts[place] for place in sorted(places.tolist())]

    def _scores(self, pairs: Sequence[Pair]) -> list[float]:
        scores = []
        for some in passes(pairs):
            scores += self.ranker.score(PairBatch.of(some)).tolist()
            self._tick(len(some))
        return scores

    def _tick(self, done: float) -> None:
        """Count passes, say how far the check is, and end it when its time is over."""
        self._passes += done
        pairs, of = len(self.found), len(self.questions)
        gone = (time.monotonic() - self._start) / self.seconds if self.seconds else 0.0
        each = self._passes / pairs if pairs else DRAWN + GUESS * (len(self.variants) + 1)
        expected = min(each * of, self._passes / gone if gone > EARLY else np.inf)
        over = pairs == of or (pairs > 0 and self.seconds is not None and gone >= 1)
        self._report(State(self._passes, self._passes if over else max(self._passes, expected), pairs, of))
        if over and pairs < of:
            raise _TimeIsOver

    def _row(self, variant: Variant) -> QuickRow:
        found = {n: pair[variant.label] for n, pair in enumerate(self.found) if variant.label in pair}

        def share(name: str) -> Mean | None:
            cases = [(n, float(right)) for n, one in found.items() for right in getattr(one, name)]
            return mean_of([right for _, right in cases], [n for n, _ in cases], seed=self.seed) if cases else None

        orders = [one.order for one in found.values() if one.order is not None]
        return QuickRow(
            variant,
            len(found),
            share("signs"),
            share("query_signs"),
            share("top"),
            mean_of(orders, seed=self.seed) if orders else None,
            float(np.mean([one.passes for one in found.values()])) if found else 0.0,
            float(np.median([one.seconds for one in found.values()])) if found else 0.0,
            self.failed.get(variant.label),
        )


def candidates_of(questions: Sequence[Listed], number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a question's candidates, the most relevant first if that is known, and documents of others beside them.

    The others are there where a question has too few candidates to give its scores a range.
    """
    one = questions[number]
    own = list(one.candidates)
    if one.labels is not None:
        own.insert(0, own.pop(int(np.argmax(one.labels))))
    own = own[:CANDIDATES]
    others: list[str] = []
    for step in range(1, len(questions)):
        if len(own) + len(others) >= FEWEST_CANDIDATES:
            break
        other = questions[(number + step) % len(questions)].candidates[0]
        others += [other] if other not in (*own, *others) else []
    return tuple(own), tuple(others)


def explained_place(labelled: bool, scores: Sequence[float], number: int) -> int:
    """Return which of a question's candidates is explained: the most relevant, or that of the highest score.

    Of every fourth question it is the second one: people look at documents that do not match too.
    """
    order = range(len(scores)) if labelled else np.argsort(-np.asarray(scores), kind="stable").tolist()
    return order[1 if number % 4 == 3 and len(scores) > 1 else 0]


def strongest(one: Attribution, side: int, count: int | None = None) -> list[Word]:
    """Return the strongest words of a text that has more words than one."""
    text = one.query if side == QUERY else one.document
    return text.strongest(STRONGEST[side] if count is None else count) if len(text.words) > 1 else []


def _held(
    one: Attribution, effects: dict[tuple[int, int], float], least: float, drawn: Sequence[int], seconds: float
) -> Held:
    def signs(side: int, count: int | None = None) -> tuple[bool, ...]:
        pairs = [(word.value, effects[side, word.start]) for word in strongest(one, side, count)]
        return tuple(value * effect > 0 for value, effect in pairs if abs(effect) > least)

    values = {word.start: word.value for word in one.document.words}
    both = [(values[start], effects[DOCUMENT, start]) for start in drawn if start in values]
    order = spearman(*np.array(both).T) if len(both) >= FEWEST else None
    return Held(signs(DOCUMENT), signs(QUERY), signs(DOCUMENT, 1), order, one.passes, seconds)


def _value(mean: Mean | None) -> float:
    return -np.inf if mean is None else mean.value


def _count(mean: Mean | None) -> int:
    return 0 if mean is None else mean.count


@dataclass(frozen=True)
class Verdict:
    """What to do with a model, in a sentence, and which methods that rests on.

    Args:
        estimate: what puts words in order at the least cost: the fewest passes among those of nearly the best order, of
            methods that leave-one-out can order words by.
        signs: what has right signs at the least cost: the fewest passes among those of nearly the most, of methods
            that have signs and whose strongest words matter.
        believable: whether those signs may be believed without measuring, in the document.
        enough: whether enough pairs were measured to say so; where not, the text only says that.
    """

    estimate: QuickRow
    signs: QuickRow
    believable: bool
    text: str
    enough: bool = True


def verdict_of(rows: Sequence[QuickRow]) -> Verdict | None:
    """Return the verdict on the rows of a check; None where no method could be measured."""
    measured = [row for row in rows if row.order is not None and row.variant.method.name != CONTROL]
    if not measured:
        return None
    estimates = [row for row in measured if row.variant.method.name in ESTIMATES] or measured
    least = max(row.order.value for row in estimates) - NEAR
    near = [row for row in estimates if row.order.value >= least]
    estimate = min(near, key=lambda row: (round(row.passes), -row.order.value))
    signed = [row for row in measured if row.variant.method.signed] or measured
    words = max(_count(row.signs) for row in signed)
    signed = [row for row in signed if 2 * _count(row.signs) >= words]  # the others name words that hardly matter
    most = max(_value(row.signs) for row in signed)
    right = [row for row in signed if _value(row.signs) >= most - NEAR_SIGNS]
    signs = min(right, key=lambda row: (round(row.passes), -_value(row.signs)))
    believable = signs.signs is not None and signs.signs.value >= GOOD and _low(signs.signs) >= SURE
    pairs = max(row.order.count for row in measured)
    if pairs < ENOUGH:
        text = f"too few pairs to say: {pairs} measured, at least {ENOUGH} are needed (let it run longer, or give more)"
        return Verdict(estimate, signs, False, text, enough=False)
    share = "–" if signs.signs is None else f"{100 * signs.signs.value:.0f} % of signs"
    orders = estimate.order.low > 0
    if believable:
        text = f"use {signs.label} on this model: {share}, {_passes(signs)}"
        rest = f"; {estimate.label} puts words in a better order" if orders and estimate is not signs else ""
        query = signs.query_signs
        weak = query is not None and round(query.value, 2) < GOOD
        warning = f"; measure the query's words, it has {100 * query.value:.0f} % of their signs" if weak else ""
        return Verdict(estimate, signs, True, text + warning + rest)
    if not orders:
        text = "measure all words of this model: none of these methods orders them better than chance"
        return Verdict(estimate, signs, False, f"{text} (most signs: {signs.label}, {share})")
    text = f"measure words on this model, and order the rest by {estimate.label}, {_passes(estimate)}"
    if signs.signs is not None and signs.signs.value >= GOOD and signs.signs.low >= SURE:
        few = f"{signs.signs.count} words are too few to believe signs unmeasured"
        return Verdict(estimate, signs, False, f"{text}: {few} (best: {signs.label}, {share})")
    return Verdict(estimate, signs, False, f"{text}: no sign can be believed unmeasured (best: {signs.label}, {share})")


def _low(share: Mean) -> float:
    """Return the lower end of a share's interval.

    Drawing anew cannot tell three of three from a thousand of a thousand, so it is not above Wilson's for as many words
    (Probable Inference, the Law of Succession, and Statistical Inference, 1927).
    """
    z, n, p = 1.96, share.count, share.value
    middle = p + z * z / (2 * n)
    wilson = (middle - z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return min(share.low, wilson)


def _passes(row: QuickRow) -> str:
    return f"{row.passes:.0f} pass" + ("" if round(row.passes) == 1 else "es")
