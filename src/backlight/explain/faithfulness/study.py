"""A study: every method on every measure, unit by unit, with results saved as they are measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from backlight.errors import BacklightError
from backlight.explain.faithfulness.links import LinkedPair, measure_links
from backlight.explain.faithfulness.measure import Plan, Variant, measure_pair
from backlight.explain.faithfulness.questions import Question
from backlight.explain.faithfulness.randomisation import batch_difference, is_native, randomised, similarity
from backlight.explain.faithfulness.records import Records
from backlight.explain.faithfulness.shortcuts import WORDS, Shortcut, can_learn, planted, precision, teach
from backlight.explain.methods.interactions import ESTIMATES
from backlight.models.pairs import Pair
from backlight.models.scorer import Scorer

TAUGHT = 400  # questions beyond those of the study that a shortcut is learnt from
CHECKED_PASSES = 150  # that a method may take to explain the pairs that it is checked on; one pair at least
SOUGHT_PASSES = 1500  # that a method may take to look for a shortcut; four pairs at least
LINKED = 60  # about how many passes of a pair the matrices of a sentence are worth
SLOW = {"integrated-hessians"}  # on fewer pairs
TESTED = 40  # questions of the study that say whether it took


@dataclass(frozen=True)
class Unit:
    """One piece of work, whose result is kept by its key."""

    key: str
    work: Callable[[], dict]
    weight: float  # about how much work, in passes of one pair


class Study:
    """What is measured on a model.

    Args:
        questions: in a random order: those that are measured, and more that a shortcut is learnt from.
        variants: the methods.
        plan: how much is measured.
        records: where results are kept.
        links: pairs whose words people linked, in a random order.
    """

    def __init__(
        self,
        ranker: Scorer,
        questions: Sequence[Question],
        variants: Sequence[Variant],
        plan: Plan,
        records: Records,
        links: Sequence[LinkedPair] = (),
    ):
        self.ranker, self.variants, self.plan, self.records = ranker, tuple(variants), plan, records
        self.questions = tuple(questions[: plan.pairs])
        self.links = tuple(links[: plan.links])
        self._others = tuple(questions[plan.pairs :])
        self._random: dict[str, Scorer] = {}
        self._shortcut: Shortcut | BacklightError | None = None  # or why it could not be taught

    def run(self, progress: Callable[[float, float], None] = lambda done, total: None) -> None:
        """Do all that is not done yet.

        Args:
            progress: called with the work done so far and the work in all, in passes of one pair.
        """
        first = Unit(pair_key(0), partial(self._measure, 0, self.variants), 0)  # it shows what each method costs
        if first.key not in self.records:
            self.records.add(first.key, first.work())
        units = [first, *self._units()]
        total, done = sum(unit.weight for unit in units), 0.0
        for unit in units:
            if unit.key not in self.records:
                self.records.add(unit.key, unit.work())
            done += unit.weight
            progress(done, total)

    def passes_of(self, variant: Variant) -> float:
        """Return how many passes a method took for the first pair; if it failed there, all it may take."""
        return self.records[pair_key(0)]["methods"].get(variant.label, {"passes": self.plan.budget})["passes"]

    def _units(self) -> Iterator[Unit]:
        pairs = len(self.questions)
        numbers = {variant.label: self.plan.share_of(self.passes_of(variant), pairs) for variant in self.variants}
        for number in range(1, pairs):
            taking = [variant for variant in self.variants if number < numbers[variant.label]]
            yield Unit(pair_key(number), partial(self._measure, number, taking), self._weight(number, taking))
        for number, linked in enumerate(self.links):
            slow = number < self.plan.slow_links
            names = [name for name in ESTIMATES if slow or name not in SLOW]
            work = partial(measure_links, self.ranker, linked, number, names)
            yield Unit(links_key(number), work, LINKED * (5 if number < self.plan.slow_links else 1))
        checks = {"batch_effect": self._batch_invariance, "randomised": self._randomised, "shortcut": self._precision}
        for name, work in checks.items():
            for variant in self.variants if self._can(name) else ():
                pairs = self._shortcut_pairs(variant) / 4 if name == "shortcut" else 3 * self._checks(variant)
                weight = self.passes_of(variant) * pairs
                yield Unit(check_key(name, variant), partial(_tried, work, variant), weight)

    def _weight(self, number: int, variants: Sequence[Variant]) -> float:
        """Return about how many passes a pair takes: explanations, curves, rivals, bounds."""
        rivals = len(self.questions[number].rivals) if number < self.plan.ranked else 0
        curves = len(variants) * (14 if number < self.plan.detailed else 5)
        return sum(map(self.passes_of, variants)) + curves + rivals + (200 if number < self.plan.bounds else 0)

    def _can(self, check: str) -> bool:
        """Return whether a check can be made on this model."""
        if check == "shortcut":
            return can_learn(self.ranker) and bool(self._taught() and self._without_words(self.questions))
        return check == "batch_effect" or is_native(self.ranker)

    def _measure(self, number: int, variants: Sequence[Variant]) -> dict:
        plan = self.plan
        near = {name: number < getattr(plan, name) for name in ("ranked", "detailed", "bounds")}
        return measure_pair(self.ranker, self.questions[number], variants, **near)

    def _batch_invariance(self, variant: Variant) -> dict:
        other = self.ranker.read([(self.questions[-1].text, self.questions[-1].document)])
        return {"differences": batch_difference(variant, self.ranker, self._checked(variant), other)}

    def _randomised(self, variant: Variant) -> dict:
        self._random = self._random or randomised(self.ranker, seed=self.plan.seed)
        return similarity(variant, self.ranker, self._random, self._checked(variant))

    def _precision(self, variant: Variant) -> dict:
        taught = self._teach()
        rng = np.random.default_rng([self.plan.seed, 3])
        texts = [(q, planted(d, WORDS, rng)) for q, d in self._without_words(self.questions)]
        pairs = taught.ranker.read(texts[: self._shortcut_pairs(variant)])
        found = [precision(one, pair, WORDS) for one, pair in zip(variant(taught.ranker, pairs), pairs, strict=True)]
        return {"precisions": found, "agreement": taught.agreement}

    def _teach(self) -> Shortcut:
        """Return the model with the shortcut, taught once; what it is tested on is what the methods explain."""
        if self._shortcut is None:
            tested = self._without_words(self.questions)[:TESTED]
            try:
                self._shortcut = teach(self.ranker, self._taught(), tested, seed=self.plan.seed)
            except BacklightError as problem:
                self._shortcut = problem
        if isinstance(self._shortcut, BacklightError):
            raise self._shortcut
        return self._shortcut

    def _shortcut_pairs(self, variant: Variant) -> int:
        """Return on how many pairs a method looks for the shortcut: fewer for a costly one."""
        pairs = max(4, int(SOUGHT_PASSES / self.passes_of(variant)))
        return min(pairs, self.plan.shortcut)

    def _taught(self) -> list[tuple[str, str]]:
        """Return pairs to learn a shortcut from, none of which is measured."""
        return self._without_words(self._others)[:TAUGHT]

    def _checks(self, variant: Variant) -> int:
        """Return on how many pairs the batch effect and randomisation are checked."""
        pairs = max(1, int(CHECKED_PASSES / self.passes_of(variant)))
        return min(pairs, self.plan.checked, len(self.questions))

    def _checked(self, variant: Variant) -> list[Pair]:
        return self.ranker.read([(one.text, one.document) for one in self.questions[: self._checks(variant)]])

    @staticmethod
    def _without_words(questions: Sequence[Question]) -> list[tuple[str, str]]:
        """Return the pairs whose texts hold none of the shortcut's words."""
        pairs = [(one.text, one.document) for one in questions]
        return [(q, d) for q, d in pairs if not set(WORDS) & set(f"{q} {d}".lower().split())]


def pair_key(number: int) -> str:
    """Return the key of a pair's record."""
    return f"pair {number}"


def links_key(number: int) -> str:
    """Return the key of the record of a pair with links."""
    return f"links {number}"


def check_key(name: str, variant: Variant) -> str:
    """Return the key of a check's record."""
    return f"{name} {variant.label}"


def _tried(work: Callable[[Variant], dict], variant: Variant) -> dict:
    try:
        return work(variant)
    except BacklightError as problem:
        return {"failed": str(problem)}
